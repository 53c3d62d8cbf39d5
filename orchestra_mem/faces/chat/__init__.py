"""A chat endpoint in OpenAI's protocol: what is relevant of the memory goes to the model with each message."""

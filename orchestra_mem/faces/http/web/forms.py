"""What browsers send by forms: which piece of a list is wanted, what is to be changed, where they are led then."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, HTTPException, Request
from starlette.responses import RedirectResponse

from orchestra_mem.faces.http.web.pages import Form, PageNumber

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 100


class ListForm(Form):
    """What a list is narrowed by, and which page of it is wanted."""

    page: PageNumber = 1

    @property
    def address(self) -> str:
        """What an address of the same list has behind its path, but for the page."""
        given = self.model_dump(mode="json", exclude_unset=True, exclude={"page"})
        return f"?{urlencode(given, doseq=True)}{'&' * bool(given)}"


async def _sent(request: Request) -> dict[str, str]:
    """Read a form's fields; of two with one name the last."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HTTPException(415, f"send the fields of the form as {_FORM}, as browsers do")
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise HTTPException(422, "this is no form as browsers send them") from None


Sent = Annotated[dict[str, str], Depends(_sent)]
"""The fields of a form, by their names."""


def see_other(address: str) -> RedirectResponse:
    """Lead a browser on after a form, so that loading the page again sends nothing twice."""
    return RedirectResponse(address, 303)

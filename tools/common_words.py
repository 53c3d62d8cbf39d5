"""Writes the English words that are never taken for a mistyped word of a command, by the counts of pyspellchecker.

Only those are kept that would be: common words that lie near a word of the commands. Run it again after the
vocabulary of the commands has grown:

    pip install pyspellchecker
    python tools/common_words.py
"""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path

from orchestra_mem.core.language.intents.mending import mended_word
from orchestra_mem.core.language.intents.normalising import SPELLINGS
from orchestra_mem.core.language.intents.rules import destructive_words, vocabulary

PROJECT = Path(__file__).resolve().parents[1]
MOST_COMMON = 12_000
TARGET = PROJECT / "orchestra_mem/core/language/intents/common_words.py"
# Words of trades in which work is planned; subtitles, of which the counts were made, hardly have them.
TRADE = """
admin agile ajax alert alerts analytics android api apis app apps array asset assets async audit auth avatar aws
azure backend backlog backup backups bash beta billing binary blog boot branch branches browser buffer bug bugfix
bugs build builds bundle byte bytes cache caches caching calendar captcha cert certs chat checkbox checkout
checklist chunk chunks class client clients cli clone cloud cluster codec column columns commit commits compiler
component config console container containers cookie cookies core crawler cron crud css csv cursor daemon dash
dashboard dashboards data database dataset datasets db debug decoder default defaults delta demo deploy deployment
deploys dev devops dialog diff digest dns doc docker docs domain domains draft drafts driver dropdown dump editor
email emails embed encoder endpoint endpoints endian engine env epoch epochs export exports faq favicon feature
features feed feeds fetch field fields file filename files filter filters firewall firmware fixture fixtures flag
flags flow flows folder folders font fonts footer fork form format forms framework frontend function gateway git
github grafana graph graphs grid grpc gui guide hash header headers helm hook hooks host hosting hotfix html http
icon icons id ide import imports inbox index infra input inputs install intro invoice invoices ios iot issue issues
java job jobs json kafka kanban kernel key keys label labels lambda latency layer layers layout legacy lib library
licence license lint linter linux listing load loader locale lock log logger logging login logins logo logout logs
loop loss mailer margin mask menu menus merge merges meta metadata metric metrics middleware migrate migration
migrations mobile mock mocks modal model models modem module modules monitor mongo mysql nav navbar network nginx
node nodes notice null oauth offline onboarding online onsite outage output outputs package packages page pages
parser parsers patch path paths payload payment payments payout pdf perf permit permits phase phases ping pipe
pipeline pipelines pixel pixels playlist plugin plugins png podcast popup port portal postgres prefix preset preview
pricing print probe prod profile profiles prompt prompts proof protocol prototype proxy pull push python qa query
queries queue queues quiz quota raid ram rate rates react readme redis refactor refund refunds regex region release
releases render report reports repo repos request requests research reset response rest retries retry review reviews
robot role roles rollout roster router routes rows rust saas salary sandbox scan schema schemas scope scopes score
scores screen screens script scripts scroll scrum sdk search seed seeds segment sensor seo server servers service
session sessions settings setup shader shaders shell shop sidebar signup sim site sitemap slack slide slides slider
slot slots smtp snippet socket spec specs spike spikes spinner splash sprint sprints sprite sql ssh ssl sso stack
staging stats storage store stream streams string style styles stub stubs suite survey surveys svg sync syntax tab
table tables tabs tag tags template templates terminal test testing tests text theme themes thread threads throttle
thumbnail ticket timeline timer timezone token tokens toolbar tools tooltip topic topics trace traces tracker
traffic training trigger triggers tuning tutorial type types ui unit units update updates upload uploads url urls
usage user users utf uuid ux validator variable vendor vendors venue version versions video view viewer views
virtual volume vpn vue wallet webhook webhooks website widget widgets wifi wiki window windows wireframe wireframes
wizard worker workers workflow workflows xml yaml zip anna ben bob dan dana dina ian jan jim ken kim lena lisa mara
marc maria mark nina sam sara tim tina tom
""".split()
# Rarer in talk of work than the word that is meant by them.
TYPED_FOR_OTHERS = frozenset("finnish stared staring bock fond whit".split())
HEAD = '''"""Common English words near to those of commands, right as they stand; written by `tools/common_words.py`."""

from __future__ import annotations

COMMON_WORDS = frozenset(
    """
'''
TAIL = '''
    """.split()
)
'''


def common_words() -> list[str]:
    """Give the commonest words, the commonest first; contractions and the shortest left out."""
    checker = importlib.import_module("spellchecker").SpellChecker(language="en")
    counts: dict[str, int] = checker.word_frequency.dictionary
    words = (word for word in counts if word.isascii() and word.isalpha() and len(word) > 2)
    return sorted(words, key=lambda word: (-counts[word], word))[:MOST_COMMON]


def main() -> None:
    """Write the module."""
    near = [
        word
        for word in dict.fromkeys([*common_words(), *TRADE])
        if word not in SPELLINGS
        and word not in TYPED_FOR_OTHERS
        and mended_word(word, vocabulary(), frozenset(), destructive_words()) != word
    ]
    lines = textwrap.fill(" ".join(sorted(near)), width=116, initial_indent="    ", subsequent_indent="    ")
    TARGET.write_text(f"{HEAD}{lines}{TAIL}", encoding="utf-8")
    print(f"{TARGET.relative_to(PROJECT)}: {len(near):,} words")


if __name__ == "__main__":
    main()

"""`remuda hook AGENT`: what an agent's own hooks call. Nothing is imported that costs time, nothing is said that the
agent would take for an answer, and nothing that goes wrong here is ever the user's problem.

Hooks are installed to run this file by its path, with `python -I -S`: what `site` does at every start would be a third
of the whole cost, and the half of the records that is used here needs only the standard library.
"""

import os
import sys


def hook(arguments: list[str]) -> int:
    agent = arguments[0] if arguments else ""
    answer = ""
    try:
        if agent == "git":
            from remuda.records.githooks import told

            told(arguments[1:])
        elif not os.environ.get("REMUDA_AGENT"):  # the runtime records the turns of those that it supervises
            answer = _answer(agent)
    except BaseException as error:
        sys.stderr.write(f"remuda: this turn is not recorded: {error}\n")
    if agent == "gemini":
        answer = answer or "{}"
    if answer:
        sys.stdout.write(answer)
    return 0


def _answer(agent: str) -> str:
    import json

    from remuda.records.hooked import EVENTS, heard

    given = sys.stdin.buffer.read()
    payload = json.loads(given) if given.strip() else {}
    if agent not in EVENTS or not isinstance(payload, dict):
        return ""
    said = heard(agent, payload)
    return json.dumps(said) if said else ""


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.exit(hook(sys.argv[1:]))

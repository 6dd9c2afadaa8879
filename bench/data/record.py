"""Record what real tool servers say of themselves, for the benchmark of intents.

    python bench/data/record.py FOLDER [NAME ...]

Installs each server that is named below, or all, into FOLDER (npm and uv on PATH), starts it with keys that open
nothing, asks for its tools and writes bench/data/tool_servers.json. What cannot be started is told and left out.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from threading import Timer
from typing import Any

OUT = Path(__file__).parent / "tool_servers.json"
PATIENCE = 60.0  # seconds for one server


@dataclass(frozen=True, slots=True)
class Package:
    name: str  # as a person would call the server
    package: str
    version: str
    program: str
    arguments: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def from_npm(self) -> bool:
        return not self.program.startswith("python:")


def npm(name: str, package: str, program: str, *arguments: str, **env: str) -> Package:
    at = package.rindex("@")
    return Package(name, package[:at], package[at + 1 :], program, arguments, env)


def pypi(name: str, package: str, program: str, *arguments: str, **env: str) -> Package:
    package, _, version = package.partition("==")
    return Package(name, package, version, f"python:{program}", arguments, env)


KEY = "opens-nothing"
OFFICIAL = "@modelcontextprotocol/server-"
PACKAGES = (
    npm("filesystem", f"{OFFICIAL}filesystem@2026.8.31", "mcp-server-filesystem", "."),
    npm("memory", f"{OFFICIAL}memory@2026.8.31", "mcp-server-memory"),
    npm("sequential-thinking", f"{OFFICIAL}sequential-thinking@2026.8.31", "mcp-server-sequential-thinking"),
    npm("everything", f"{OFFICIAL}everything@2026.8.31", "mcp-server-everything"),
    npm("github", f"{OFFICIAL}github@2025.4.8", "mcp-server-github"),
    npm("gitlab", f"{OFFICIAL}gitlab@2025.4.25", "mcp-server-gitlab", GITLAB_PERSONAL_ACCESS_TOKEN=KEY),
    npm("slack", f"{OFFICIAL}slack@2025.4.25", "mcp-server-slack", SLACK_BOT_TOKEN=KEY, SLACK_TEAM_ID="T"),
    npm("postgres", f"{OFFICIAL}postgres@0.6.2", "mcp-server-postgres", "postgresql://localhost/none"),
    npm("google-maps", f"{OFFICIAL}google-maps@0.6.2", "mcp-server-google-maps", GOOGLE_MAPS_API_KEY=KEY),
    npm("brave-search", f"{OFFICIAL}brave-search@0.6.2", "mcp-server-brave-search", BRAVE_API_KEY=KEY),
    npm("playwright", "@playwright/mcp@0.0.83", "playwright-mcp"),
    npm("chrome-devtools", "chrome-devtools-mcp@1.11.0", "chrome-devtools-mcp"),
    npm("sentry", "@sentry/mcp-server@0.39.0", "sentry-mcp", f"--access-token={KEY}"),
    npm("notion", "@notionhq/notion-mcp-server@2.5.2", "notion-mcp-server", NOTION_TOKEN=KEY),
    npm("firecrawl", "firecrawl-mcp@3.26.0", "firecrawl-mcp", FIRECRAWL_API_KEY=KEY),
    npm("context7", "@upstash/context7-mcp@4.1.1", "context7-mcp"),
    npm("tavily", "tavily-mcp@0.2.22", "tavily-mcp", TAVILY_API_KEY=KEY),
    npm("exa", "exa-mcp-server@3.4.1", "exa-mcp-server", EXA_API_KEY=KEY),
    npm("stripe", "@stripe/mcp@0.2.5", "mcp", "--tools=all", "--api-key=sk_test_opens_nothing"),
    npm("kubernetes", "mcp-server-kubernetes@4.1.7", "mcp-server-kubernetes"),
    npm("figma", "figma-developer-mcp@0.13.2", "figma-developer-mcp", "--stdio", FIGMA_API_KEY=KEY),
    npm("mongodb", "mongodb-mcp-server@3.0.4", "mongodb-mcp-server"),
    npm("airtable", "airtable-mcp-server@1.14.0", "airtable-mcp-server", AIRTABLE_API_KEY="pat123.abc123"),
    npm("hubspot", "@hubspot/mcp-server@0.4.0", "mcp-hubspot", PRIVATE_APP_ACCESS_TOKEN=KEY),
    npm("todoist", "@doist/todoist-mcp@11.0.0", "todoist-mcp", TODOIST_API_KEY=KEY),
    npm("mapbox", "@mapbox/mcp-server@0.14.0", "mcp-server", MAPBOX_ACCESS_TOKEN=f"sk.eyJ1IjoiYSJ9.{KEY}"),
    npm(
        "elasticsearch",
        "@elastic/mcp-server-elasticsearch@0.3.1",
        "mcp-server-elasticsearch",
        ES_URL="http://localhost:9",
        ES_API_KEY=KEY,
    ),
    npm("docker", "mcp-server-docker@1.0.0", "mcp-server-docker"),
    npm(
        "google-calendar",
        "@cocal/google-calendar-mcp@2.6.3",
        "google-calendar-mcp",
        GOOGLE_OAUTH_CREDENTIALS="gcp-oauth.keys.json",
    ),
    npm("gmail", "@gongrzhe/server-gmail-autoauth-mcp@1.1.11", "gmail-mcp"),
    npm("shopify", "@shopify/dev-mcp@1.16.0", "shopify-dev-mcp"),
    npm("circleci", "@circleci/mcp-server-circleci@0.20.0", "mcp-server-circleci", CIRCLECI_TOKEN=KEY),
    npm("launchdarkly", "@launchdarkly/mcp-server@0.6.2", "mcp", "start", f"--api-key={KEY}"),
    npm("chart", "@antv/mcp-server-chart@0.9.10", "mcp-server-chart"),
    pypi("git", "mcp-server-git==2026.10.19", "mcp-server-git"),
    pypi("fetch", "mcp-server-fetch==2026.10.24", "mcp-server-fetch"),
    pypi("time", "mcp-server-time==2026.10.19", "mcp-server-time"),
    pypi("sqlite", "mcp-server-sqlite==2025.4.25", "mcp-server-sqlite", "--db-path", "none.db"),
    pypi("excel", "excel-mcp-server==2.2.2", "excel-mcp-server", "stdio"),
    pypi("arxiv", "arxiv-mcp-server==0.8.2", "arxiv-mcp-server"),
    pypi("calculator", "mcp-server-calculator==0.2.1", "mcp-server-calculator"),
    pypi("text-editor", "mcp-text-editor==1.0.2", "mcp-text-editor"),
    pypi("shell", "mcp-shell-server==1.1.14", "mcp-shell-server", ALLOW_COMMANDS="ls"),
    pypi("duckduckgo", "duckduckgo-mcp-server==0.7.0", "duckduckgo-mcp-server"),
    pypi(
        "atlassian",
        "mcp-atlassian==0.23.1",
        "mcp-atlassian",
        JIRA_URL="https://none.example",
        JIRA_USERNAME="u",
        JIRA_API_TOKEN=KEY,
        CONFLUENCE_URL="https://none.example",
        CONFLUENCE_USERNAME="u",
        CONFLUENCE_API_TOKEN=KEY,
    ),
    pypi("aws-docs", "awslabs.aws-documentation-mcp-server==1.2.3", "awslabs.aws-documentation-mcp-server"),
    pypi("obsidian", "mcp-obsidian==0.2.3", "mcp-obsidian", OBSIDIAN_API_KEY=KEY),
    pypi("word", "office-word-mcp-server==1.1.11", "word_mcp_server"),
    pypi("wikipedia", "wikipedia-mcp==2.0.1", "wikipedia-mcp"),
    pypi(
        "clickhouse",
        "mcp-clickhouse==0.7.0",
        "mcp-clickhouse",
        CLICKHOUSE_HOST="localhost",
        CLICKHOUSE_USER="u",
        CLICKHOUSE_PASSWORD=KEY,
    ),
    pypi("youtube-transcript", "mcp-youtube-transcript==0.3.5", "mcp-youtube-transcript"),
    pypi("weather", "mcp-weather-server==0.6.1", "mcp_weather_server"),
    pypi("pandoc", "mcp-pandoc==0.11.1", "mcp-pandoc"),
    pypi("blender", "blender-mcp==2.0.0", "blender-mcp"),
    pypi("elevenlabs", "elevenlabs-mcp==0.12.2", "elevenlabs-mcp", ELEVENLABS_API_KEY=KEY),
    pypi("zotero", "zotero-mcp-server==0.15.1", "zotero-mcp", ZOTERO_LOCAL="true"),
)


def install(package: Package, into: Path) -> tuple[Path, str]:
    """The program, and what its registry says of it in a line."""
    folder = into / ("npm" if package.from_npm else "py") / package.package.replace("/", "_").replace("@", "_")
    if package.from_npm:
        home = folder / "node_modules"
        if not home.exists():
            folder.mkdir(parents=True)
            (folder / "package.json").write_text('{"private": true}')
            flags = ("--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional")
            _run("npm", "install", "--loglevel=error", *flags, f"{package.package}@{package.version}", cwd=folder)
        about = json.loads((home / package.package / "package.json").read_text())
        return home / ".bin" / package.program, about.get("description") or ""
    if not folder.exists():
        _run("uv", "venv", "-q", "--python", sys.executable, str(folder))
        _run("uv", "pip", "install", "-q", "--python", str(folder), f"{package.package}=={package.version}", "mcp<2")
    return folder / "bin" / package.program.removeprefix("python:"), _summary(folder, package.package)


def _summary(folder: Path, package: str) -> str:
    wanted = package.replace("-", "_").replace(".", "_").lower()
    for path in folder.glob("lib/*/site-packages/*.dist-info"):
        found: Distribution = PathDistribution(path)
        if found.metadata["Name"].replace("-", "_").replace(".", "_").lower() == wanted:
            return found.metadata["Summary"] or ""
    return ""


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def listed(program: Path, package: Package, home: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the server says when it is greeted, and all its tools."""
    (home / ".gmail-mcp").mkdir(parents=True, exist_ok=True)
    keys = {"client_id": KEY, "client_secret": KEY, "redirect_uris": ["http://localhost"]}
    (home / "gcp-oauth.keys.json").write_text(json.dumps({"installed": keys}))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **package.env}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen([program, *package.arguments], env=env, cwd=home, start_new_session=True, **pipes)  # type: ignore[call-overload]
    ending = Timer(PATIENCE, lambda: os.killpg(child.pid, signal.SIGKILL))
    ending.start()
    try:
        answers = _exchange(child)
        return next(answers)["result"], [tool for page in answers for tool in page["result"]["tools"]]
    finally:
        ending.cancel()
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def _exchange(child: "subprocess.Popen[bytes]") -> Iterator[dict[str, Any]]:
    assert child.stdin is not None

    def send(method: str, params: Mapping[str, object], number: int | None = None) -> None:
        assert child.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        child.stdin.write(json.dumps(message).encode() + b"\n")
        child.stdin.flush()

    who = {"name": "recorder", "version": "1"}
    send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}, 1)
    yield _answer(child, 1)
    send("notifications/initialized", {})
    number, cursor = 2, ""
    while number == 2 or cursor:
        send("tools/list", {"cursor": cursor} if cursor else {}, number)
        page = _answer(child, number)
        number, cursor = number + 1, page["result"].get("nextCursor") or ""
        yield page


def _answer(child: "subprocess.Popen[bytes]", number: int) -> dict[str, Any]:
    assert child.stdout is not None
    for line in child.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue  # some print their log here
        if isinstance(message, dict) and message.get("id") == number and "method" not in message:
            if "error" in message:
                raise RuntimeError(message["error"])
            found: dict[str, Any] = message
            return found
    raise EOFError("it ended without an answer")


def main(folder: Path, names: Sequence[str]) -> int:
    before = {each["name"]: each for each in json.loads(OUT.read_text())} if OUT.exists() else {}
    for package in PACKAGES:
        if names and package.name not in names:
            continue
        try:
            program, summary = install(package, folder)
            greeting, tools = listed(program, package, folder / "home")
        except (OSError, EOFError, RuntimeError, KeyError, subprocess.SubprocessError) as error:
            print(f"{package.name}: {type(error).__name__} {error}"[:200])
            continue
        print(f"{package.name}: {len(tools)} tools")
        before[package.name] = {
            "name": package.name,
            "package": f"{'npm' if package.from_npm else 'pypi'}:{package.package}@{package.version}",
            "description": summary,
            "instructions": greeting.get("instructions") or "",
            "tools": [{"name": tool["name"], "description": tool.get("description") or ""} for tool in tools],
        }
    rows = ",\n".join(json.dumps(before[name], ensure_ascii=False) for name in sorted(before) if before[name]["tools"])
    OUT.write_text(f"[\n{rows}\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))

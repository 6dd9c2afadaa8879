"""The `remuda.toml` that a new project gets: every setting, with its default, and what it is for.

Apart from what reads it, because whoever only starts a runtime in the background needs none of that.
"""

TEMPLATE = """\
# Settings of Remuda for this project. Every key is optional; what is here are the defaults.

[project]
# backend = "scripted"    # who runs an agent when `remuda spawn` does not say

[turns]
# silence_seconds = 900   # a turn without a sign of life for so long is given up; tools and questions do not count
# records = "beside"      # in git under tags; "files": in the work tree too; "branch": committed as well; "off"
# folder = "ai/agentic-pipeline"   # of the records
# directory = "turn-{number}"      # of one turn in it; add {id} where records of many clones are merged
# signing_key = ""        # a file with an ed25519 key, as ssh-keygen makes it
# allowed_signers = ""    # a file with the keys whose signatures count
# tests = []              # commands that are run before a turn counts as complete: ["make", "test"]
# lint = []
# typecheck = []
# build = []
# scan = []
# headers = []            # files that must begin with a metadata header: ["src/**/*.ts"]
# versions = []           # files whose version must be raised when they change
# branch_pattern = ""     # a regular expression for the branch that work is done on
# commit_pattern = ""     # and one for the first line of each commit
# check_seconds = 600     # a check that takes longer has failed
# blocking = false        # whether a turn whose checks fail has failed

[tasks]
# coordinator = "remuda"  # "none": nobody assigns but you, and an agent of role coordinator
# review = "other"        # "none": what passes its checks is merged without a review
# workers = 0             # spawned, up to so many, while there is work for them

# [[routing]]             # who gets a task: the first that fits, by a label or by a file
#   labels = []
#   paths = []            # patterns, as in "docs/*"
#   role = "worker"
#   backend = ""
#   model = ""
#   tokens = 0            # and usd, turns, minutes: the budget of those that are spawned for it; 0: as [budget] says
#   usd = 0.0
#   turns = 0
#   minutes = 0.0

[roles.worker]            # what agents of a role may do: "tool" or "tool:path", with * and ?
# allow = []
# ask = []                # asked of you: `remuda answer`
# deny = []
# default = "allow"
# outside = "deny"        # files outside the project
# sandbox = false         # by bubblewrap: it may write in the project and nowhere else
# network = true          # in the sandbox; without it loopback is cut off as well
# verdict = "reap"        # of a stopped agent, where nobody gives one: also "restart", "continue", "wait"

# [agents.mine]           # a program of your own that speaks ACP; `remuda agents` lists it
#   command = ["my-agent", "--acp"]
#   env = []              # names of variables that may pass to it: nothing else of your environment does
#   title = ""

[gateway]                 # tool servers that come on intent and leave after idle turns
# idle_turns = 5          # a server unused for so many turns leaves
# idle_seconds = 0.0      # and not before so much time has passed since its last use
# listing = "auto"        # how tools are listed: "stable", "dynamic", "search", or what suits the client
# token_budget = 0        # most tokens that the lists of running servers may take together; 0 is no limit
# output_bytes = 1000000  # of one result; what is longer goes to a file
# env_file = ""           # NAME=value lines that ${env:NAME} may name besides the environment
# spells = []             # folders with *.spell.yaml files

# [gateway.servers.github]     # `remuda gateway add` and `import` write these
#   command = ["npx", "-y", "@modelcontextprotocol/server-github"]
#   url = ""                   # instead of a command, for one that runs elsewhere
#   transport = "stdio"        # or "http", "sse"
#   cwd = ""
#   env = { GITHUB_PERSONAL_ACCESS_TOKEN = "${env:GITHUB_TOKEN}" }
#   headers = {}
#   description = ""
#   keywords = []              # words by which an intent finds it
#   steering = ""              # told to the model once, when the server is started
#   allow = ["*"]              # its tools
#   deny = []
#   any_tools = false          # take its tools as they come: a change of them needs no approval
#   idle_turns = 5
#   pinned = false             # never leaves for idleness
#   enabled = true
#   start_seconds = 30.0
#   call_seconds = 300.0
# [gateway.servers.github.auth]
#   type = "bearer"            # or "basic", "client_credentials"
#   token = ""
#   username = ""
#   password = ""
#   client_id = ""
#   client_secret = ""
#   token_url = ""
#   scope = ""

# [gateway.roles.worker]       # what agents of a role may find and call: "server" or "server/tool"
#   allow = ["*"]
#   deny = []

[worktrees]               # each task has one, in .remuda/worktrees
# set_up = []             # run in each new one before anyone works in it, as in ["npm", "ci"]
# set_up_seconds = 900
# precious = [".env", ".env.*", "*.pem", "*.key", "*.sqlite", "*.sqlite3", "*.db", "*.local.*"]  # ignored, but kept

[acceptance]              # the commands that must succeed before a task is done
# seconds = 900           # for each command
# env = []                # names of variables that may pass to them, and to the set-up

[merge]
# mode = "branch-only"    # on remuda/merged; or "local": the target itself; or "pull-request-text"
# history = "rebase"      # or "squash": one commit for each task; or "merge"
# target = ""             # the branch to merge into; empty: the one that you are on

[budget]                  # of each agent that you spawn and give no other; 0 is no limit
# tokens = 0              # all of them: input, output, from the cache and into it
# usd = 0.0
# turns = 0
# minutes = 0.0           # in turns

[meter]                   # the proxy between agents and models, which counts and stops
# on = true
# skip = []               # agent programs that go to their models themselves; they then only tell of their calls

# [meter.upstreams.anthropic]  # or openai-responses, openai-chat, gemini
#   url = "https://api.anthropic.com"
#   key = "ANTHROPIC_API_KEY"  # the name of a variable where `remuda up` runs; agents never see it

[output]
# lines = 100             # recent lines of output kept in memory for each live agent

[watch]
# idle = true             # agents whose work is done and verified expire (workers) or hibernate (other roles)

[watch.spin]              # going in circles
# enabled = true
# nudge = 6.0             # points without progress until an agent is told; `remuda dev spin` tries others
# fire = 14.0             # until it is stopped
# nudge_rounds = 3        # of the same calls with the same outcome
# fire_rounds = 6

[watch.stall]
# silences = 2            # sessions in a row that say and do nothing

[watch.changeset]         # 0: never for that reason
# failures = 3            # checks in a row that fail in the same way
# conflicts = 3
# files = 0               # that a task may change
# outside = false         # whether it is wrong to change files outside the paths that a task names

[watch.gang]
# share = 0.5             # of those below an agent that were stopped
# least = 3               # so many of them at any rate
# tokens = 0              # that they may spend without an accepted change
# same_files = 3          # of them whose work fails on the very same files

[watch.verdict]           # what is to become of an agent that was stopped
# seconds = 600.0         # to wait for one; then it is as roles.NAME.verdict says
# restarts = 3            # then it is given up,
# restart_seconds = 3600.0  # if they were in so short a time

[bodies]                  # the oldest dead are buried by themselves, transcripts and all; 0: never for that reason
# days = 0.0              # after so long
# at_most = 0             # when there are more
# megabytes = 0.0         # when their transcripts take more
"""

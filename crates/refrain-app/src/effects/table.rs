//! When each option of each verb has an effect.

use refrain_core::Spec;
use refrain_core::gate::GateSpec;
use refrain_core::git::Checkout;

use super::{Row, always, holds, never, typed, with, without};

/// The verbs with their options, in groups that share them.
pub static TABLE: &[(&[&str], &[Row])] = &[
    (&["start", "research", "implement", "resume"], BEGIN),
    (&["start", "research", "implement", "run", "resume", "tick begin"], REPOSITORY),
    (&["start"], &[without("mode", OF_PLAN, "not with a plan: each task has its own prompt")]),
    (&["start", "research", "implement"], START),
    (&["start", "research", "implement"], NOT_OF_PLANS),
    (&["start", "research", "implement", "run", "resume", "plan run"], WORK),
    (&["start", "research", "implement", "run", "resume", "plan run", "tick begin"], GATES),
    (&["start", "research", "implement", "run", "resume", "tick begin"], OF_MISSING),
    (
        &[
            "start",
            "research",
            "implement",
            "run",
            "resume",
            "answer",
            "approve",
            "plan run",
            "plan resume",
            "plan tune",
        ],
        SHOW,
    ),
    (&["resume"], RESUME),
    (&["tick begin"], SESSION),
    (&["run"], RUN),
    (&["plan run"], PLAN),
    (&["plan run"], OF_LOOPS),
    (&["plan check", "plan show"], LOOK),
    (&["plan new"], &[always("plan agent command model")]),
    (&["plan waves"], &[always("tag plan jobs json")]),
    (&["plan status"], &[always("tag json")]),
    (&["plan pause", "plan cancel"], &[always("tag now")]),
    (
        &["plan resume"],
        &[always("tag max-iterations-per-task max-total-iterations max-duration max-cost yes")],
    ),
    (&["plan tune"], TUNE),
    (&["plan add"], &[always("tag name text after")]),
    (&["plan retry", "plan block"], &[always("tag name")]),
    (&["approve"], &[always("tree max-duration")]),
    (&["show"], &[always("json at")]),
    (&["gc"], &[always("dry-run yes json")]),
    (&["status"], &[always("json state-file at")]),
    (&["list"], &[always("all-projects archived plan limit json at")]),
    (&["usage"], USAGE),
    (&["watch"], &[always("events")]),
    (&["top"], &[always("all-projects")]),
    (&["logs"], &[always("follow raw iteration at")]),
    (&["pause"], &[always("now")]),
    (&["cancel"], &[always("all now state-file")]),
    (&["verify"], &[always("report json at")]),
    (&["report"], &[always("json html output at")]),
    (&["export"], &[always("as output")]),
    (&["diff"], &[always("stat iteration at")]),
    (&["merge"], &[always("squash unverified")]),
    (&["fleet dev"], &[always("port slots yes")]),
    (&["fleet init"], &[always("address namespace signer")]),
    (&["fleet list"], &[always("project state pool team plan json")]),
    (&["worker"], &[always("slots agents pool name")]),
    (&["worker list"], &[always("json")]),
    (&["move"], &[always("to from with-changes signer")]),
    (&["open"], &[always("shell")]),
    (&["memory add"], &[always("kind importance")]),
    (&["memory search", "memory export"], &[always("all-projects json")]),
    (&["memory list"], &[always("kind all-projects json")]),
    (&["memory proposals"], &[always("json")]),
    (&["memory forget"], FORGET),
    (&["serve"], SERVE),
    (&["serve token"], &[always("revoke")]),
    (&["serve token list"], &[always("json")]),
    (&["tick hold"], &[always("watch")]),
    (&["hook"], &[always("agent")]),
    (&["mcp"], &[always("root")]),
    (&["plugin install", "plugin remove"], &[always("dry-run")]),
    (&["plugin status"], &[always("json")]),
    (&["config show"], &[always("origin json")]),
    (&["config get"], &[always("json")]),
    (&["init"], &[always("agent git no-gates no-sandbox make vscode dry-run yes")]),
    (
        &["promise"],
        &[
            always("completion-promise promise-match"),
            typed(
                "gated",
                |level| level.value("promise-match") != Some("substring"),
                "it has no effect with --promise-match substring, which counts anywhere; leave one of them out",
            ),
        ],
    ),
    (&["demo"], &[always("crash plan dir")]),
    (&["doctor"], &[always("fix json autostart fleet")]),
    (
        &["trust"],
        &[
            always("list revoke show hash tag plan"),
            with("json", "list", "it has no effect without --list; add that, or leave it out"),
        ],
    ),
];

const PROGRAM: &str = "command agent agent-arg env clean-env prompt-mode output-format model permissions";
const CHECKS: &str = "gate soft-gate success-command auto-gates protect protect-existing require-approval";
const OF_CHECKS: &str = "gate-timeout gate-retries gate-when gate-env clean-checkout";

const BEGIN: &[Row] = &[
    always("prompt prompt-file prompt-name directions name max-iterations mirror"),
    always("completion-promise no-promise no-gates loop exact infinite"),
    holds(
        "promise-match",
        |spec| spec.promise.is_some(),
        "it has no effect without a promise; leave it out, or give --completion-promise TEXT",
    ),
    without(
        "stuck-threshold on-stuck",
        "exact",
        "it has no effect with --exact, whose loops are never stuck; leave it out, or use --max-iterations",
    ),
];

const REPOSITORY: &[Row] = &[
    always(
        "git-workflow auto-commit open-pr pr-and-merge create-branch no-create-branch worktree no-worktree",
    ),
    holds(
        "commit-template",
        |spec| spec.git.workflow.commits(),
        "it has no effect unless the loop commits; add --git-workflow commit",
    ),
    holds(
        "commit-when",
        |spec| spec.git.workflow.commits() && spec.has_hard_gates(),
        "it has no effect unless the loop commits and has required gates; leave it out, or add --gate CMD",
    ),
    holds(
        "branch-template",
        |spec| spec.git.checkout != Checkout::AsIs,
        "it has no effect without a new branch; add --create-branch or --worktree",
    ),
    holds(
        "no-create-branch",
        |spec| !is_apart(spec),
        "it has no effect in a worktree of its own, which is always on a new branch; add --no-worktree, or leave it out",
    ),
    holds("base", is_apart, "it has no effect without a worktree of its own; add --worktree"),
    holds(
        "share-worktree",
        |spec| !is_apart(spec),
        "it has no effect in a worktree of its own; add --no-worktree, or leave it out",
    ),
];

const START: &[Row] = &[
    always("scud-tag plan"),
    with("reviewer reviewer-model", "spec-gate", NO_SPEC),
    with("spec-file max-spec-tokens spec-template verify", OF_PLAN, WITHOUT_PLAN),
    without("on", OF_PLAN, "not with start and a plan; use refrain plan run --on fleet"),
    with("jobs pipeline max-iterations-per-task max-total-iterations tune dry-run", OF_PLAN, WITHOUT_PLAN),
    without("detach events quiet notify notify-command", "dry-run", DRY_RUN),
    without("detach events notify notify-command", "on", ON_FLEET),
];

const OF_PLAN: &str = "scud-tag plan";
const WITHOUT_PLAN: &str =
    "it has no effect without a plan; add --scud-tag TAG or --plan FILE, or use refrain plan run";
const ON_FLEET: &str = "it has no effect with --on fleet, whose loops run elsewhere; leave it out";
const DRY_RUN: &str = "it has no effect with --dry-run, which runs nothing; leave one of them out";
const PROMPTS: &str = "not with a plan: the tasks are its prompts; add text for every agent with --plan FILE or --spec-file FILE";
const PROMISES: &str = "not with a plan: the agents of its tasks claim with TASK_COMPLETE";
const SUCCESS: &str =
    "not with a plan: the agents of its tasks claim with TASK_COMPLETE; accepted: --verify and --gate";
const OWN: &str = "not with a plan: each task has its own worktree and branch, and Refrain merges the result into your branch";

/// Options that `start --scud-tag` refuses.
const NOT_OF_PLANS: &[Row] = &[
    without("words prompt prompt-file prompt-name", OF_PLAN, PROMPTS),
    without("completion-promise no-promise promise-match", OF_PLAN, PROMISES),
    without("success-command", OF_PLAN, SUCCESS),
    without("no-gates", OF_PLAN, "not with a plan, whose tasks need a gate to land verified"),
    without(GIT, OF_PLAN, OWN),
    without("directions", OF_PLAN, "not with a plan: use --spec-file FILE, which every agent gets"),
    without("loop exact infinite", OF_PLAN, "not with a plan, which ends with its tasks"),
];

const GIT: &str = "git-workflow auto-commit open-pr pr-and-merge commit-template commit-when create-branch no-create-branch branch-template worktree no-worktree base share-worktree";

/// The same, for verbs that only know plans.
const OF_LOOPS: &[Row] = &[
    never("words prompt prompt-file prompt-name", PROMPTS),
    never("completion-promise no-promise promise-match", PROMISES),
    never("success-command", SUCCESS),
    never(GIT, OWN),
];

const WORK: &[Row] = &[
    always(PROGRAM),
    always("max-duration max-cost max-tokens timeout idle-timeout pause working-dir"),
    always("memory no-iteration-context stuck-threshold on-stuck spec-gate critique-every yes"),
    always("sandbox no-sandbox"),
    holds(
        "sandbox-host sandbox-localhost",
        |spec| spec.sandbox.is_some(),
        "it has no effect without a sandbox; add --sandbox",
    ),
    holds(
        "timeout-grace",
        |spec| spec.limits.timeout.is_some(),
        "it has no effect without a time limit; add --timeout DUR",
    ),
    holds("retry-for", waits, "it has no effect with a command whose provider is not known; leave it out"),
    holds(
        "critic",
        |spec| spec.critique.is_some(),
        "it has no effect without a critique; add --critique-every N",
    ),
];

const NO_SPEC: &str = "it has no effect without a specification; add --spec-gate FILE";

const GATES: &[Row] = &[
    // Protection refuses a claim without a gate too.
    always(CHECKS),
    always("allow-missing-gates"),
    holds(
        OF_CHECKS,
        |spec| !spec.gates.is_empty(),
        "it has no effect without a gate; add --gate CMD or --auto-gates",
    ),
];

/// Checks that may be missing. A task of a plan may name a gate that the plan does not have.
const OF_MISSING: &[Row] = &[holds(
    "allow-missing-gates",
    |spec| !spec.gates.is_empty() || spec.critique.is_some(),
    "it has no effect without a gate; add --gate CMD, or leave it out",
)];

const SHOW: &[Row] = &[always("detach json events quiet notify notify-command")];

const RESUME: &[Row] = &[
    always("last all now from state-file retry-for"),
    holds("reviewer reviewer-model", |spec| spec.gates.iter().any(GateSpec::is_review), NO_SPEC),
    with("after-reboot", "all", "it has no effect without --all; add that, or leave it out"),
    without(
        "events",
        "all",
        "it has no effect with --all, which resumes each loop in its own process; use refrain watch ID",
    ),
    with("mode prompt prompt-file prompt-name directions name mirror", FROM, AS_STARTED),
    with("completion-promise no-promise no-gates promise-match loop exact infinite", FROM, AS_STARTED),
    with(GIT, FROM, AS_STARTED),
    with(PROGRAM, FROM, AS_STARTED),
    with(
        "timeout timeout-grace idle-timeout pause working-dir memory no-iteration-context",
        FROM,
        AS_STARTED,
    ),
    with(
        "stuck-threshold on-stuck spec-gate reviewer reviewer-model critique-every critic",
        FROM,
        AS_STARTED,
    ),
    with(CHECKS, FROM, AS_STARTED),
    with(OF_CHECKS, FROM, AS_STARTED),
    with("allow-missing-gates yes", FROM, AS_STARTED),
    with("sandbox sandbox-host sandbox-localhost", FROM, AS_STARTED),
    without("no-sandbox", "all", "it has no effect with --all; resume the loop by its id"),
];

const FROM: &str = "from state-file";
const AS_STARTED: &str = "it has no effect without --from FILE: a loop keeps the options it was started with; accepted: --max-iterations, --max-duration, --max-cost, --max-tokens and --retry-for";

/// What a session begins a loop with, or continues one.
const SESSION: &[Row] = &[
    never(
        "sandbox no-sandbox sandbox-host sandbox-localhost",
        "the session runs its agent itself; start the session in a sandbox, or use refrain start --sandbox",
    ),
    // The session's command passes these with the user's words after it.
    always("args lead mode agent session-id"),
    always("max-iterations resume resume-last loop"),
    without(
        "name completion-promise no-gates prompt prompt-file prompt-name directions mirror isolation loop-shared loop-isolated exact infinite",
        RESUMED,
        CONTINUES,
    ),
    without("gate soft-gate success-command auto-gates protect protect-existing", RESUMED, CONTINUES),
    without(
        "gate-timeout gate-retries gate-when gate-env clean-checkout require-approval",
        RESUMED,
        CONTINUES,
    ),
    without(
        "allow-missing-gates spec-gate reviewer reviewer-model critique-every critic",
        RESUMED,
        CONTINUES,
    ),
    without(
        "max-duration max-cost max-tokens model stuck-threshold no-iteration-context",
        RESUMED,
        CONTINUES,
    ),
    without(GIT, RESUMED, CONTINUES),
    with("reviewer reviewer-model", "spec-gate", NO_SPEC),
    holds(
        "critic",
        |spec| spec.critique.is_some(),
        "it has no effect without a critique; add --critique-every N",
    ),
    never("command agent-arg env clean-env prompt-mode output-format permissions", OWN_AGENT),
    never(
        "timeout timeout-grace idle-timeout pause retry-for",
        "not in a session, which ends its own turns; refrain start takes it, --max-duration counts here",
    ),
    never(
        "working-dir worktree no-worktree base",
        "not in a session, which works where it is; start the session there, or use refrain start",
    ),
    never("share-worktree", "not in a session: sessions share their worktree; leave it out"),
    never("memory", "not in a session, which remembers by itself; leave it out, or use refrain start"),
    never("on-stuck", "not in a session, whose agent stays; --stuck-threshold counts here"),
    never("no-promise promise-match", "not in a session, which always has a promise, as a tag; leave it out"),
    never("yes", "not in a session; trust the project with refrain trust"),
];

const OWN_AGENT: &str = "not in a session, whose agent runs already; refrain start takes it";
const RESUMED: &str = "resume resume-last";
const CONTINUES: &str = "it has no effect on a loop that continues, which has its own; accepted beside --resume is --max-iterations";

/// What `run` takes.
const RUN: &[Row] = &[
    always("on"),
    without("detach events notify notify-command", "on", ON_FLEET),
    always("max-iter non-interactive reviewer reviewer-model"),
    never("spec-gate", "PROMPT_FILE is the specification that the reviewer checks; leave it out"),
];

const PLAN: &[Row] = &[
    with("reviewer reviewer-model", "spec-gate", NO_SPEC),
    always("tag plan spec-file max-spec-tokens spec-template verify name max-iterations mirror on"),
    always("jobs pipeline max-iterations-per-task max-total-iterations tune dry-run"),
    without("detach events quiet notify notify-command", "dry-run", DRY_RUN),
];

/// What only looks at a plan takes the line of `plan run` as it is.
const LOOK: &[Row] = &[
    always("json tag plan spec-file max-spec-tokens spec-template verify name"),
    always(PROGRAM),
    always("max-duration max-cost max-tokens retry-for timeout timeout-grace idle-timeout pause working-dir"),
    always(CHECKS),
    always(OF_CHECKS),
    always("allow-missing-gates"),
    never("success-command", SUCCESS),
    always("spec-gate reviewer reviewer-model critique-every critic stuck-threshold on-stuck"),
    always("memory no-iteration-context yes"),
    always("sandbox no-sandbox sandbox-host sandbox-localhost"),
];

const TUNE: &[Row] = &[
    always("name tag words words-file reviewer accept resume"),
    with(
        "detach events notify notify-command",
        "resume",
        "it has no effect without --resume; add that, or leave it out",
    ),
];

const USAGE: &[Row] = &[
    always("since by all-projects json format svg"),
    typed(
        "by",
        |level| level.value("format") != Some("prometheus") || level.has("svg"),
        "it has no effect with --format prometheus, which prints every group; leave it out, or add --svg FILE",
    ),
];

const FORGET: &[Row] = &[
    always("loop all"),
    with("all-projects yes", "all", "it has no effect without --all; add that, or leave it out"),
];

const SERVE: &[Row] = &[
    always("port host behind-proxy tls-cert tls-key root open json"),
    with("tls-key", "tls-cert", "it has no effect without --tls-cert FILE; add that, or leave it out"),
];

fn is_apart(spec: &Spec) -> bool {
    spec.git.checkout.is_own_worktree()
}

/// Whether it may have to wait: for the provider of an agent that reports its errors, or for a remote.
#[must_use]
pub fn waits(spec: &Spec) -> bool {
    spec.agents().any(|agent| agent.streams()) || spec.git.workflow.publishes()
}

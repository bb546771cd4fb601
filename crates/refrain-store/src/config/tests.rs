//! Layers, origins and refusals, with real files in a folder of their own.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use proptest::prelude::*;
use refrain_core::agent::Usd;
use refrain_core::spec::{Millis, OutputFormat, Permissions, PromptMode, Secret};
use refrain_core::values::Limit;
use rstest::rstest;
use tempfile::TempDir;

use super::{AgentChoice, ConfigError, Places, ProjectFile, Settings, load, project_file};
use crate::access::trust::{Content, Trust};
use crate::project::layout::Project;

struct Home {
    _dir: TempDir,
    root: Utf8PathBuf,
    project: Project,
    variables: Vec<(OsString, OsString)>,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap().canonicalize_utf8().unwrap();
        for name in ["config", "project"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let project = Project::find(&root.join("project")).unwrap();
        Self { _dir: dir, root, project, variables: Vec::new() }
    }

    fn user(self, text: &str) -> Self {
        crate::write_atomic(&self.root.join("config/config.toml"), text.as_bytes()).unwrap();
        self
    }

    fn untrusted(self, text: &str) -> Self {
        crate::write_atomic(&self.root.join("project/refrain.toml"), text.as_bytes()).unwrap();
        self
    }

    fn project(self, text: &str) -> Self {
        let home = self.untrusted(text);
        let trust = Trust::new(&home.root.join("state"));
        trust.grant(&home.project.root, Content::File(text), Timestamp::UNIX_EPOCH).unwrap();
        home
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn load_for(&self, chosen: AgentChoice<'_>) -> Result<Settings, ConfigError> {
        let (config, state) = (self.root.join("config"), self.root.join("state"));
        load(
            Places {
                config_home: &config,
                state_home: &state,
                project: &self.project,
                trusts_once: false,
                variables: &self.variables,
            },
            chosen,
        )
    }

    fn load(&self) -> Settings {
        self.load_for(AgentChoice::default()).unwrap()
    }

    fn refusal(&self) -> String {
        let error = self.load_for(AgentChoice::default()).unwrap_err().to_string();
        error.replace(self.root.as_str(), "")
    }

    fn origin(&self, settings: &Settings, key: &str) -> String {
        settings.origin(key).to_string().replace(self.root.as_str(), "")
    }
}

#[rstest]
#[case::a_project_asks_for_a_person("", "true", Some(true))]
#[case::it_does_not_do_without_one("require-approval = true", "false", Some(true))]
#[case::it_says_nothing_with_a_no("", "false", None)]
fn a_project_only_adds_a_persons_approval(
    #[case] user: &str,
    #[case] project: &str,
    #[case] expected: Option<bool>,
) {
    let home = Home::new().user(&format!("[start]\n{user}\n"));
    let home = home.project(&format!("[start]\nrequire-approval = {project}\n"));
    assert_eq!(home.load().config.start.require_approval, expected);
    // The user's own word for this once.
    let home = home.variable("REFRAIN_REQUIRE_APPROVAL", "false");
    assert_eq!(home.load().config.start.require_approval, Some(false));
}

#[test]
fn each_layer_is_above_the_one_before_and_each_value_knows_where_it_stands() {
    let home = Home::new()
        .user("[start]\ntimeout = 60\nmax-iterations = 5\npause = \"1s\"\n")
        .project("# ours\n[start]\n\ntimeout = \"2m\"\nmax-cost = 2.5\n")
        .variable("REFRAIN_TIMEOUT", "3m")
        .variable("REFRAIN_CLEAN_ENV", "true")
        .variable("REFRAIN_MODEL", "")
        .variable("REFRAIN_BLESS", "1");
    let settings = home.load();
    let start = &settings.config.start;
    assert_eq!(start.timeout, Some(Limit::At(Millis(180_000))));
    assert_eq!(start.max_iterations, Some(5));
    assert_eq!(start.max_cost, Some(Limit::At(Usd(2_500_000_000))));
    assert_eq!((start.clean_env, &start.model), (Some(true), &None));
    for (key, origin) in [
        ("timeout", "REFRAIN_TIMEOUT"),
        ("max-cost", "/project/refrain.toml:5"),
        ("max-iterations", "/config/config.toml:3"),
        ("model", "default"),
    ] {
        assert_eq!(home.origin(&settings, key), origin, "{key}");
    }
}

#[test]
fn a_file_that_is_not_trusted_is_not_there() {
    let home = Home::new().project("[start]\nmodel = \"a\"\n");
    let path = home.root.join("project/refrain.toml");
    assert_eq!(home.load().project_file, ProjectFile::Trusted(path.clone()));
    for changed in ["[start]\nmodel = \"b\"\n", "[start]\nmodel = \"a\"\n\n", "not = [ TOML"] {
        let home = Home { project: home.project.clone(), ..Home::new() };
        fs::remove_file(&path).unwrap();
        crate::write_atomic(&path, changed.as_bytes()).unwrap();
        let settings = home.load();
        assert_eq!(
            (settings.project_file, settings.config.start.model),
            (ProjectFile::Untrusted(path.clone()), None)
        );
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(home.load().project_file, ProjectFile::Absent);
}

/// What the user's file, the project's file and the command line say of the agent; and what holds: agent, program,
/// model, whether there are arguments.
type Layers = (&'static str, &'static str, Option<&'static str>, bool);
type Holds = (Option<&'static str>, Option<&'static str>, Option<&'static str>, bool);

#[rstest]
#[case::alone(("agent='claude'\nmodel='opus'", "", None, false), (Some("claude"), None, Some("opus"), false))]
#[case::more_of_the_same(("agent='claude'\nmodel='opus'", "model='haiku'", None, false), (Some("claude"), None, Some("haiku"), false))]
#[case::another(("agent='claude'\nmodel='opus'\nagent-arg='-v'", "agent='codex'", None, false), (Some("codex"), None, None, false))]
#[case::by_option(("agent='claude'\nmodel='opus'\ncommand='claude -v'", "", Some("codex"), false), (Some("codex"), None, None, false))]
#[case::by_command(("agent='claude'\nmodel='opus'", "", None, true), (None, None, None, false))]
#[case::a_model_alone_is_for_all(("model='opus'", "", Some("claude"), false), (Some("claude"), None, Some("opus"), false))]
#[case::named(("", "agent='work'", None, false), (Some("claude"), Some("work.sh"), Some("named"), true))]
#[case::named_by_option(("model='general'", "", Some("work"), false), (Some("claude"), Some("work.sh"), Some("named"), true))]
#[case::beside_a_name(("agent='work'\nmodel='beside'", "", None, false), (Some("claude"), Some("work.sh"), Some("beside"), true))]
#[case::above_a_name(("agent='work'", "model='above'", None, false), (Some("claude"), Some("work.sh"), Some("above"), true))]
#[case::in_place_of_a_name(("agent='work'", "command='x'", None, false), (None, Some("x"), None, false))]
fn the_options_of_an_agent_come_and_go_with_it(#[case] layers: Layers, #[case] holds: Holds) {
    let (user, project, agent, command) = layers;
    let work = "[agents.work]\nkind='claude'\ncommand=['work.sh', 'a b']\nargs=['-x']\nmodel='named'\nenv={ A='1' }\n";
    let home =
        Home::new().user(&format!("{work}[start]\n{user}\n")).project(&format!("[start]\n{project}\n"));
    let config = home.load_for(AgentChoice { agent, command }).unwrap().config;
    let start = &config.start;
    let program = start.command.as_ref().map(|command| command.program.as_str());
    let found = (start.agent.as_deref(), program, start.model.as_deref(), start.agent_arg.is_some());
    assert_eq!(found, holds);
    assert_eq!(start.env.len(), usize::from(holds.3), "its variables come and go with it");
}

#[test]
fn entries_of_named_tables_are_replaced_as_a_whole() {
    let home = Home::new()
        .user("[agents.a]\ncommand='user'\nmodel='m'\n[agents.b]\ncommand='b'\n[prices.m]\ninput=1\noutput='2'\n")
        .project("[agents.a]\ncommand='project'\n[prompts.fix]\nfile='tasks/fix.md'\n[modes.fix]\nfile='fix.md'\n");
    let config = home.load().config;
    assert_eq!((&config.agents["a"].model, config.agents.len()), (&None, 2));
    assert_eq!(config.prompts["fix"].file, Some(home.root.join("project/tasks/fix.md")));
    assert_eq!(config.modes["fix"].file, Some(home.root.join("project/fix.md")));
    assert_eq!(home.load().price("m").unwrap().cached_input, Usd(1_000_000_000));
}

#[test]
fn everything_that_is_documented_can_be_said() {
    let text = r#"
[start]
agent = "work"
env = { A = "1" }
clean-env = true
prompt-name = "fix"
promise = true
completion-promise = "ALL DONE"
promise-match = "tag"
max-iterations = 30
max-duration = "8h"
max-cost = "none"
max-tokens = "2M"
retry-for = 90
timeout = "20m"
timeout-grace = "30s"
idle-timeout = "none"
pause = 0
share-worktree = true
iteration-context = false
mirrors = ["synthex", "descartes"]
output-cap = "64MiB"

[git]
workflow = "commit"
commit-template = "loop: {iteration}"
create-branch = false
branch-template = "loop/{timestamp}"
worktree = true
base = "main"
largest-file = 1048576
allow-secrets = ["tests/keys/"]

[agents.work]
kind = "generic"
command = "./agent.sh --fast"
args = ["-x"]
env = { B = "2" }
prompt-mode = "stdin"
output-format = "stream-json"
permissions = "full"
model = "m"

[prompts.fix]
text = "Mend the tests."

[gates]
env = ["TOKEN", "LEVEL=1=2"]

[gates.test]
command = "cargo test"
hard = true
timeout = "10m"
retries = 1
when = "claim"

[protect]
frozen = ["ci/**"]
existing = ["tests/**"]

[worktrees]
disk-budget = "512MiB"

[prices."gpt-5.5"]
input = 1.25
cached-input = 0.125
output = 10
"#;
    let config = Home::new().project(text).load().config;
    let start = &config.start;
    assert_eq!(
        (start.prompt_mode, start.output_format),
        (Some(PromptMode::Stdin), Some(OutputFormat::StreamJson))
    );
    assert_eq!((start.permissions, start.env.len()), (Some(Permissions::Full), 2));
    assert_eq!((start.max_cost, start.pause), (Some(Limit::None), Some(Limit::None)));
    assert_eq!((start.output_cap, config.git.largest_file), (Some(64 << 20), Some(1 << 20)));
    assert_eq!(start.timeout_grace, Some(Millis(30_000)));
    assert_eq!(config.worktrees.disk_budget(), 512 << 20);
    assert_eq!(config.gates.named().next().unwrap().1.timeout, Some(Millis(600_000)));
    let variables = config.gates.variables().iter();
    let variables: Vec<_> =
        variables.map(|it| (it.name.as_str(), it.value.as_ref().map(Secret::expose))).collect();
    assert_eq!(variables, [("TOKEN", None), ("LEVEL", Some("1=2"))]);
}

#[test]
fn a_gate_may_be_called_env() {
    let config = Home::new()
        .project("[gates.env]\ncommand = \"./check\"\n[gates.a]\ncommand = \"true\"\n")
        .load()
        .config;
    assert_eq!(config.gates.named().map(|(name, _)| name).collect::<Vec<_>>(), ["env", "a"]);
    assert!(config.gates.variables().is_empty());
}

/// A project's file, and what the refusal names after the path.
#[rstest]
#[case(
    "[start]\n\nmax-iteration = 3",
    ":3: max-iteration is no key of [start]; did you mean max-iterations?"
)]
#[case("[strat]\na = 1", ":1: strat is no key of a configuration file; did you mean start?")]
#[case("max-iterations = 3", ":1: max-iterations is no key of a configuration file; it belongs into [start]")]
#[case("zzz = 3", ":1: zzz is no key of a configuration file; accepted: agents, budget,")]
#[case("[agents.x]\ncommand = 'a'\nmodle = 'b'", ":3: modle is no key of [agents.x]; did you mean model?")]
#[case(
    "[start]\ntimeout = 'soon'",
    ":2: start.timeout: \"soon\": accepted: seconds, or like 90s, 5m, 1h30m, up to 366d, or none"
)]
#[case(
    "[start]\nmax-iterations = 500",
    ":2: start.max-iterations: 500: accepted: whole numbers from 1 to 200"
)]
#[case("[start]\nmax-cost = -1", ":2: start.max-cost: -1: accepted: an amount of US dollars above 0")]
#[case("[start]\nclean-env = 'yes'", ":2: start.clean-env: \"yes\": accepted: true and false")]
#[case("[start]\npermissions = 'all'", ":2: start.permissions: \"all\": accepted: auto, full, agent")]
#[case("[start]\ncompletion-promise = ' '", ":2: start.completion-promise: a promise cannot be empty")]
#[case("[start]\ncommand = \"a 'b\"", ":2: start.command: \"a 'b\": a quotation is not closed")]
#[case("[start]\ncommand = []", ":2: start.command: accepted: a program and its arguments")]
#[case(
    "[sandbox]\nlocalhost = [5432]\n[plan]\njobs = 65",
    ":4: plan.jobs: 65: accepted: whole numbers from 1 to 64"
)]
#[case("[sandbox]\nlocalhost = ['a']", ":2: sandbox.localhost: [\"a\"]: accepted: a list of whole numbers")]
#[case("[start]\nagent-arg = [1]", ":2: start.agent-arg: [1]: accepted: one text, or a list of texts")]
#[case("[start]\nagent = 'hal'", ":2: there is no agent \"hal\"; accepted: generic, claude,")]
#[case("[start]\nagent = 'cluade'", "did you mean claude?")]
#[case("[start]\nenv = { REFRAIN_DEPTH = '0' }", ":2: start.env: accepted: names of variables")]
#[case("start = 3", ":1: start: 3: accepted: a table")]
#[case("[start]\ntimeout = { a = 1 }", ":2: start.timeout: a table: accepted: seconds")]
#[case("[start]\ntimeout = [1]", ":2: start.timeout: [1]: accepted: seconds")]
#[case("[start]\nmax-tokens = true", ":2: start.max-tokens: true: accepted")]
#[case("[[start]]\na = 1", ":1: start: a list: accepted: a table")]
#[case("[start]\nclean-env = 'true'", ":2: start.clean-env: \"true\": accepted: true, without quotes")]
#[case(
    "[start]\nmirrors = ['synthex', 'x']",
    ":2: start.mirrors: \"x\": accepted: ralph, synthex, descartes, randroid"
)]
#[case("[start]\nmodel = 3", ":2: start.model: 3: accepted: a text in quotes")]
#[case("[start]\nenv = { A = 1 }", ":2: start.env.A: a number: accepted: a text in quotes")]
#[case(
    "[agents.x]\nkind = 'claud'",
    ":2: agents.x.kind: \"claud\": accepted: generic, claude, codex, opencode, gemini, acp; did you mean claude?"
)]
#[case(
    "[gates.x]\ncommand = 'a'\nretries = -1",
    ":3: gates.x.retries: -1: accepted: whole numbers from 0 on"
)]
#[case("[start]\na = ", ":2: this is no TOML: ")]
#[case("[start]\ntimeout = 1\ntimeout = 2", ":3: this is no TOML: duplicate key")]
#[case(
    "[git]\nworkflow = 'merge'",
    ":2: git.workflow: \"merge\": accepted: none, commit, push, pr, pr-merge"
)]
#[case("[git]\ncommit-template = '{day}'", ":2: git.commit-template: {day} stands for nothing")]
#[case("[git]\nallow-secrets = ['[a']", ":2: git.allow-secrets: \"[a\" is no glob: unclosed character class")]
#[case("[git]\nlargest-file = '10MB'", ":2: git.largest-file: \"10MB\": accepted: a number of bytes")]
#[case("[gates]\nenv = [1]", ":2: gates.env: a list: accepted: one text, or a list of texts")]
#[case("[agents.Bad]\ncommand = 'x'", ":1: agents.Bad: accepted: names of a-z")]
#[case("[agents.claude]\ncommand = 'x'", ":1: agents.claude: this is the name of an adapter")]
#[case("[agents.x]\nkind = 'acp'", ":1: agents.x: it needs a command")]
#[case("[agents.x]", ":1: agents.x: it needs a command")]
#[case("[prompts.x]", ":1: prompts.x: accepted: either text or file")]
#[case("[notify]\nwebhook='ftp://x'", ":2: notify.webhook: accepted: a URL of http or https")]
#[case("[notify]\nntfy='topic'", ":2: notify.ntfy: accepted: the URL of a topic, as https://ntfy.sh/TOPIC")]
#[case(
    "[notify]\nntfy='https://y.org/t'\nntfy-replies='https://y.org/t'",
    ":3: notify.ntfy-replies: accepted: another topic than that of notify.ntfy"
)]
#[case(
    "[notify]\nwebhook='https://x.org'\nntfy='https://y.org/t'",
    ":3: notify.ntfy: accepted: either ntfy or webhook"
)]
#[case("[notify]\nwebhook='https://'", ":2: notify.webhook: accepted: a URL of http or https")]
#[case("[slack]\napi-url='slack.com'", ":2: slack.api-url: accepted: a URL of http or https")]
#[case("[slack]\nchannels=['#general']", ":2: slack.channels: accepted: ids as Slack has them")]
#[case("[slack]\nmay-start=['U1', 'ann']", ":2: slack.may-start: accepted: ids as Slack has them")]
#[case("[slack]\nmay-stop=['C1']", ":2: slack.may-stop: accepted: ids as Slack has them")]
#[case("[slack]\nnotify=true", ":2: slack.notify: it needs channels")]
#[case("[slack]\ntoken='xoxb-1'", ":2: token is no key of [slack]")]
#[case("[modes.x]\ntext='x'\nfile='y'", ":1: modes.x: accepted: either text or file")]
#[case("[modes.X]\ntext='x'", ":1: modes.X: accepted: names of a-z, 0-9 and -, with a letter first")]
#[case("[gates.x]\nhard = true", ":1: gates.x: accepted: either command or spec")]
#[case("[gates.x]\ncommand = 'a'\nspec = 'b.md'", ":1: gates.x: accepted: either command or spec")]
#[case("[gates.x]\ncommand = 'a'\nmodel = 'b'", ":3: gates.x.model: a command has none; accepted with spec")]
#[case("[critique]\nevery = 0", ":2: critique.every: ")]
#[case("[gates.x]\ncommand = ' '", ":2: gates.x.command: it is empty")]
#[case("[protect]\nfrozen = ['ci', '']", ":2: protect.frozen: a glob cannot be empty")]
#[case("[protect]\nexisting = ['[a']", ":2: protect.existing: \"[a\" is no glob")]
#[case("[prices.m]\ninput = 1", ":1: prices.m: it needs output")]
#[case("[prices.m]\ninput = nan\noutput = 1", ":2: prices.m.input: nan: accepted: an amount of US dollars")]
fn an_invalid_file_is_refused_by_line_and_key(#[case] text: &str, #[case] says: &str) {
    let refusal = Home::new().project(text).refusal();
    assert!(refusal.contains(says), "{refusal}");
    assert!(refusal.starts_with("/project/refrain.toml:") && !refusal.contains('\n'), "{refusal}");
    let refusal = Home::new().user(text).refusal();
    assert!(refusal.starts_with("/config/config.toml:") && refusal.contains(says), "{refusal}");
    let untrusted = Home::new().untrusted(text);
    assert!(matches!(untrusted.load().project_file, ProjectFile::Untrusted(_)), "it is not read before that");
}

#[rstest]
#[case(
    "REFRAIN_MAX_ITERATIONS",
    "many",
    "REFRAIN_MAX_ITERATIONS: \"many\": accepted: whole numbers from 1 to 200"
)]
#[case("REFRAIN_CLEAN_ENV", "yes", "REFRAIN_CLEAN_ENV: \"yes\": accepted: true and false")]
#[case(
    "REFRAIN_GIT_WORKFLOW",
    "all",
    "REFRAIN_GIT_WORKFLOW: \"all\": accepted: none, commit, push, pr, pr-merge"
)]
#[case("REFRAIN_AGENT", "hal", "REFRAIN_AGENT: there is no agent \"hal\"")]
fn a_variable_is_refused_by_its_name(#[case] name: &str, #[case] value: &str, #[case] says: &str) {
    let refusal = Home::new().variable(name, value).refusal();
    assert!(refusal.starts_with(says), "{refusal}");
}

#[test]
fn environment_variables_set_the_same_keys_as_files() {
    let home = Home::new()
        .variable("REFRAIN_AGENT_ARG", "-a 'b c'")
        .variable("REFRAIN_COMPLETION_PROMISE", "true")
        .variable("REFRAIN_MAX_ITERATIONS", "7")
        .variable("REFRAIN_GIT_WORKTREE", "true")
        .variable("REFRAIN_ENV", "A=1")
        .variable("REFRAIN_LOOP_ID", "job");
    let config = home.load().config;
    assert_eq!(config.start.agent_arg, Some(vec!["-a".to_owned(), "b c".to_owned()]));
    assert_eq!(config.start.completion_promise.unwrap().as_str(), "true");
    assert_eq!((config.start.max_iterations, config.git.worktree), (Some(7), Some(true)));
}

#[test]
fn a_project_file_is_a_file() {
    let home = Home::new();
    let path = home.root.join("project/refrain.toml");
    let refusal = || project_file(&home.project).unwrap_err().to_string();
    assert_eq!(project_file(&home.project).unwrap(), None);

    crate::write_atomic(&home.root.join("elsewhere"), b"[start]").unwrap();
    symlink(home.root.join("elsewhere"), &path).unwrap();
    assert!(refusal().contains("symbolic link"), "{}", refusal());
    fs::remove_file(&path).unwrap();

    rustix::fs::mknodat(rustix::fs::CWD, path.as_std_path(), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    assert!(refusal().contains("no regular file"), "{}", refusal());
    fs::remove_file(&path).unwrap();

    fs::create_dir(&path).unwrap();
    assert!(refusal().contains("no regular file"), "{}", refusal());
    fs::remove_dir(&path).unwrap();

    crate::write_atomic(&path, &vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(refusal().contains("larger than 1048576 bytes"), "{}", refusal());
    crate::write_atomic(&path, &vec![b'#'; 1 << 20]).unwrap();
    assert!(project_file(&home.project).unwrap().is_some());

    crate::write_atomic(&path, b"# one\n# caf\xe9\n").unwrap();
    assert!(refusal().contains("line 2 is no UTF-8 text"), "{}", refusal());
}

#[test]
fn the_users_file_may_be_a_link() {
    let home = Home::new();
    crate::write_atomic(&home.root.join("dotfile"), b"[start]\nmodel = 'm'").unwrap();
    symlink(home.root.join("dotfile"), home.root.join("config/config.toml")).unwrap();
    assert_eq!(home.load().config.start.model.as_deref(), Some("m"));
}

#[test]
fn every_key_is_shown_with_its_value_and_no_secret_is() {
    let home = Home::new()
        .user("[agents.work]\ncommand='x'\nenv={ TOKEN='hunter2' }\n[start]\nagent='work'\nenv={ KEY='hunter2' }\n")
        .variable("REFRAIN_PAUSE", "5s");
    let entries = home.load().entries();
    let shown = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("{key}"));
        let value = entry.value.as_ref().map_or("-".to_owned(), ToString::to_string);
        format!("{value} {}", entry.origin).replace(home.root.as_str(), "")
    };
    assert_eq!(shown("start.agent"), "\"work\" /config/config.toml:5");
    assert_eq!(shown("start.pause"), "\"5s\" REFRAIN_PAUSE");
    assert_eq!(shown("start.max-iterations"), "20 default");
    assert_eq!(shown("start.model"), "- default");
    assert_eq!(shown("git.workflow"), "\"none\" default");
    assert_eq!(shown("agents.work.env.TOKEN"), "\"[redacted]\" /config/config.toml:3");
    assert_eq!(shown("start.env.KEY"), "\"[redacted]\" /config/config.toml:6");
    assert!(!serde_json::to_string(&entries).unwrap().contains("hunter2"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any text in a file is taken, or refused by place; never a panic.
    #[test]
    fn any_text_is_taken_or_refused(
        pieces in prop::collection::vec(prop_oneof![
            Just("[start]\n"), Just("[agents.a]\n"), Just("[prices.\"é\"]\n"), Just("[[gates]]\n"), Just("[start.env]\n"),
            Just("timeout = "), Just("command = "), Just("agent = "), Just("input = "), Just("a.b.c = "), Just("\"\u{7}\" = "),
            Just("1\n"), Just("'x'\n"), Just("[1, 'é']\n"), Just("{ a = 1 }\n"), Just("1979-05-27\n"), Just("\n"), Just("'"),
            Just("-inf\n"), Just("0xff\n"), Just("\"\"\"\n"),
        ], 0..12),
        tail in ".{0,8}",
    ) {
        let home = Home::new();
        let text = format!("{}{tail}", pieces.concat());
        let home = home.user(&text);
        match home.load_for(AgentChoice::default()) {
            Ok(settings) => drop(settings.entries()),
            Err(error) => prop_assert!(error.to_string().contains("config.toml:"), "{error}"),
        }
    }
}

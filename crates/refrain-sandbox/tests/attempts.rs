//! Attempts to get out of the sandbox, each in a sandbox of its own with the policy of an agent, as this user and, if this
//! is root, as a plain user too. The program is its own attacker: it starts itself in the sandbox.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without the harness"
)]

mod attack;
mod causes;

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use attack::{ATTEMPTS, MODE_OF_INPUT, Outcome};
use camino::Utf8Path;
use refrain_core::sandbox::{
    GitFolders, Mechanism, PROXY_PORT, Places, Role, SandboxSpec, policy, temporary_variables,
};
use refrain_core::spec::AgentKind;
use refrain_proc::keeper::send;
use refrain_sandbox::{HELPER_VERB, Plan, RecordFolders};

const PLAIN_USER: &str = "65534";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [HELPER_VERB, ..] => ExitCode::from(refrain_sandbox::run(&words[1..])),
        ["attempt", name, place, port] => attack::run(name, Utf8Path::new(place), port.parse().unwrap()),
        ["in", dir] => matrix(Utf8Path::new(dir)),
        ["filtered", call, words @ ..] => causes::run_without(call, words),
        ["probe", mechanism] => causes::print_cause(mechanism),
        ["--list", ..] => ExitCode::SUCCESS,
        _ => run_as_each_user(),
    }
}

/// As this user; and if that is root, as a plain user too.
fn run_as_each_user() -> ExitCode {
    let words = ["--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"];
    if !Command::new("unshare").args(words).output().is_ok_and(|made| made.status.success()) {
        println!("skipped: no namespaces can be made here");
        return ExitCode::SUCCESS;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|folder| place.starts_with(folder)) {
        println!("skipped: a sandbox hides {}; build elsewhere", place.display());
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir_in(place).unwrap();
    let own = dir.path().join("own");
    let mut code = matrix(Utf8Path::from_path(&own).unwrap());
    let is_root = rustix::process::geteuid().is_root();
    causes::check(is_root);
    if is_root && Command::new("setpriv").arg("--version").output().is_ok() {
        let plain = dir.path().join("plain");
        fs::create_dir(&plain).unwrap();
        for path in [dir.path(), &plain] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
        let exe = std::env::current_exe().unwrap();
        let as_plain = ["--reuid", PLAIN_USER, "--regid", PLAIN_USER, "--clear-groups"];
        let reached = Command::new("setpriv").args(as_plain).args(["test", "-x"]).arg(&exe).status();
        if !reached.is_ok_and(|status| status.success()) {
            println!("skipped: a plain user, who cannot reach {}", exe.display());
            return code;
        }
        let status = Command::new("setpriv").args(as_plain).arg(&exe).arg("in").arg(&plain).status().unwrap();
        if !status.success() {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn git(dir: &Utf8Path, words: &[&str]) {
    let git = Command::new("git").args(words).current_dir(dir).envs(git_env()).output().unwrap();
    assert!(git.status.success(), "{words:?}: {}", String::from_utf8_lossy(&git.stderr));
}

fn git_env() -> Vec<(String, String)> {
    let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    names.map(|name| (name.to_owned(), "a@example.org".to_owned())).into()
}

fn write(path: impl AsRef<Path>, text: &str) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn matrix(dir: &Utf8Path) -> ExitCode {
    let home = dir.join("home");
    let (project, linked) = (home.join("project"), home.join("linked"));
    for (name, text) in [
        (".bashrc", "#"),
        (".ssh/id", "key"),
        (".netrc", "login"),
        ("sibling/file", "text"),
        (".codex/auth.json", "{}"),
    ] {
        write(home.join(name), text);
    }
    write(project.join("file"), "text");
    write(project.join("conf/file"), "text");
    write(project.join("conf/hidden"), "secret");
    write(project.join(".gitignore"), "hidden\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    git(&project, &["worktree", "add", "-q", linked.as_str()]);
    write(project.join(".git/refrain/secret"), "secret");
    write(project.join(".git/modules/lib/config"), "[core]");
    write(project.join(".git/modules/lib/hooks/post-commit"), "#");
    write(project.join(".git/modules/no-head/config"), "[core]");
    write(project.join(".git/worktrees/linked/modules/no-head/config"), "[core]");
    // As managers of dotfiles do: a protected file that is a link into a folder that can be written.
    write(project.join("my-excludes"), "");
    std::os::unix::fs::symlink("../my-excludes", project.join(".git/config.worktree")).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let abstracted = SocketAddr::from_abstract_name(format!("refrain-test-{port}")).unwrap();
    let _abstract = UnixListener::bind_addr(&abstracted).unwrap();
    let by_path = format!("/tmp/refrain-test-{port}.sock");
    let _by_path = UnixListener::bind(&by_path).unwrap();
    let mut failed = 0;
    let user = rustix::process::geteuid().as_raw();
    let own = project.join(".git/worktrees/linked");
    let places = |worktree: &Utf8Path, own: &Utf8Path| Places {
        home: home.clone(),
        checkout: None,
        checkout_git: None,
        worktree: worktree.to_owned(),
        git: Some(GitFolders { own: own.to_owned(), common: project.join(".git") }),
        modules: vec![project.join(".git/modules/lib")],
        own: Vec::new(),
        credentials: Vec::new(),
        show: Vec::new(),
        agent_homes: Vec::new(),
        agent_caches: Vec::new(),
        cache_layers: Some(home.join("layer")),
        verification: None,
        temporary: Some(home.join("tmp/1")),
    };
    let (clone, worktree) = (places(&project, &project.join(".git")), places(&linked, &own));
    for (kind, places, mechanism) in [
        ("clone", &clone, Mechanism::Namespaces),
        ("linked", &worktree, Mechanism::Namespaces),
        ("files", &worktree, Mechanism::Files),
    ] {
        for (name, in_namespaces, with_files) in ATTEMPTS {
            let expected = match mechanism {
                Mechanism::Namespaces => Some(*in_namespaces),
                // Without namespaces the kernel limits no processes of root.
                Mechanism::Files if *name == "fork-bomb" && user != 0 => Some(Outcome::Refused),
                Mechanism::Files => *with_files,
            };
            let Some(expected) = expected.filter(|_| kind != "linked" || name.starts_with("git-")) else {
                continue;
            };
            let links = protected(&own, &linked);
            let (outcome, said) = run(&plan(places, mechanism, Role::Agent(AgentKind::Generic), name, port));
            let is_right = outcome == expected && links == protected(&own, &linked);
            failed += u32::from(!is_right);
            println!(
                "uid {user} {kind:8} {name:24} {outcome:?}{}",
                if is_right { "" } else { "  <-- WRONG" }
            );
            if !is_right {
                println!("{said}");
            }
        }
        failed += logins(&home, places, mechanism, port) + two_at_once(places, mechanism, port);
        failed += started_nevertheless(places, mechanism, port);
    }
    let left: Vec<_> =
        ["hooks", "info"].iter().filter(|name| !project.join(".git").join(name).is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_to_string(home.join(".ssh/id")).unwrap(), "key");
    for path in ["commondir", "objects/info/alternates", "remotes", "modules/lib/commondir"] {
        assert!(!project.join(".git").join(path).exists(), "{path}");
    }
    let _ = fs::remove_file(by_path);
    println!("{} attempts as {user}, {failed} wrong", ATTEMPTS.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What leads from and to a linked worktree.
fn protected(own: &Utf8Path, worktree: &Utf8Path) -> Vec<Option<String>> {
    let paths =
        [own.join("gitdir"), own.join("commondir"), own.join("config.worktree"), worktree.join(".git")];
    paths.iter().map(|path| fs::read_to_string(path).ok()).collect()
}

/// The home of an agent.
struct AgentHome {
    kind: AgentKind,
    login: &'static str,
    /// Beside it: what other sessions of the agent or other programs run, or in whose folder they run git.
    run_later: &'static [&'static str],
    /// A file that the agent writes, and a folder in which it leaves a symbolic link.
    data: (&'static str, &'static str),
}

const HOMES: [AgentHome; 4] = [
    AgentHome {
        kind: AgentKind::Claude,
        login: ".claude/.credentials.json",
        run_later: &[
            "shell-snapshots/x",
            "chrome/chrome-native-host",
            "ide/1.lock",
            "scripts/deep/notify.sh",
            ".config.json",
        ],
        data: ("file-history/p/mine.sh", "projects"),
    },
    AgentHome {
        kind: AgentKind::Codex,
        login: ".codex/auth.json",
        run_later: &[
            "tmp/x",
            "work.config.toml",
            "scripts/deep/notify.sh",
            "automations/x",
            ".tmp/plugins/x",
        ],
        data: ("sessions/2026/x.jsonl", "sessions/2026"),
    },
    AgentHome {
        kind: AgentKind::Opencode,
        login: ".local/share/opencode/auth.json",
        run_later: &["snapshot/x", "node_modules/x/index.js", "scripts/deep/notify.sh"],
        data: ("storage/part/x.json", "log"),
    },
    AgentHome {
        kind: AgentKind::Gemini,
        login: ".gemini/oauth_creds.json",
        run_later: &["history/x", "antigravity/mcp_config.json", "scripts/deep/notify.sh"],
        data: ("tmp/p/chats/x.json", "tmp/p"),
    },
];

/// A login that its agent replaces is replaced in the user's home, and its data are written; a program that settings may
/// name is not, and neither is what other sessions run. No link stays.
fn logins(home: &Utf8Path, places: &Places, mechanism: Mechanism, port: u16) -> u32 {
    let mut failed = 0;
    for AgentHome { kind, login, run_later, data } in HOMES {
        let path = home.join(login);
        let beside = |name: &str| path.parent().unwrap().join(name);
        write(&path, "old");
        let mut kept = vec![beside("statusline.sh")];
        if mechanism == Mechanism::Namespaces {
            kept.extend(run_later.iter().map(|name| beside(name)));
        }
        kept.iter().for_each(|path| write(path, "mine"));
        // What no record holds: a large program, and a link to one.
        let (large, linked) = (beside("large.sh"), beside("linked.sh"));
        write(&large, &"x".repeat(2 << 20));
        let _ = std::os::unix::fs::symlink(home.join(".bashrc"), &linked);
        write(beside(data.0), "mine");
        let (outcome, said) = run(&plan(places, mechanism, Role::Agent(kind), login, port));
        let now = fs::read_to_string(&path).unwrap();
        let mut changed: Vec<_> =
            kept.iter().filter(|path| fs::read_to_string(path).ok().as_deref() != Some("mine")).collect();
        changed.extend((fs::metadata(&large).unwrap().len() != 2 << 20).then_some(&large));
        changed.extend((fs::read_link(&linked).ok() != Some(home.join(".bashrc").into())).then_some(&linked));
        let link = beside(data.1).join("planted");
        let is_written = fs::read_to_string(beside(data.0)).unwrap() != "mine";
        let is_removed =
            said.contains(&format!("{link} was a link that the program made")) && !link.is_symlink();
        let expected = if mechanism == Mechanism::Namespaces { "new" } else { "new, with settings" };
        let is_right =
            outcome == Outcome::Open && now == expected && changed.is_empty() && is_written && is_removed;
        failed += u32::from(!is_right);
        let wrong = format!(" <-- WRONG: {changed:?} changed, data {is_written}, link {is_removed}\n{said}");
        println!("{mechanism:?} {login}: {now}{}", if is_right { "" } else { &wrong });
    }
    failed
}

/// The agent of one loop plants a file; when another sandbox has started, the first ends, and the other agent plants it again.
fn two_at_once(places: &Places, mechanism: Mechanism, port: u16) -> u32 {
    let planted = places.home.join(".claude/.config.json");
    let _ = fs::remove_file(&planted);
    for sign in ["first", "second"] {
        let _ = fs::remove_file(places.worktree.join(sign));
    }
    let plan = |attempt| plan(places, mechanism, Role::Agent(AgentKind::Claude), attempt, port);
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run(&plan("plant-first")));
        attack::wait_for("the first agent", || places.worktree.join("first").exists()).unwrap();
        (run(&plan("plant-second")), one.join().unwrap())
    });
    let is_right = [&one, &two].iter().all(|(outcome, said)| {
        *outcome == Outcome::Open && said.contains(&format!("{planted} is protected"))
    }) && !planted.exists();
    println!("{mechanism:?} two loops at once: {}", if is_right { "put aside" } else { "<-- WRONG" });
    if !is_right {
        println!("{}\n{}", one.1, two.1);
    }
    u32::from(!is_right)
}

/// No rights that a killed agent took from folders, and none that it gave to files that are made there, keep later sandboxes
/// from being made, or leave anything there.
fn started_nevertheless(places: &Places, mechanism: Mechanism, port: u16) -> u32 {
    let git = &places.git.as_ref().unwrap().common;
    let folders = ["modules/lib", "objects/info", "objects", ""].map(|name| git.join(name));
    let folders = [&folders[..], &[places.home.join(".claude")]].concat();
    let mode = |mode| {
        for folder in &folders {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let run = |attempt| run(&plan(places, mechanism, Role::Agent(AgentKind::Claude), attempt, port));
    // One in which the first one's path is too long.
    let long = git.join("modules").join("n".repeat(255));
    let mut too_long = places.clone();
    too_long.modules.push(long.join("n".repeat(255)).join("n/".repeat(1800)));
    let kept = protected(&places.git.as_ref().unwrap().own, &places.worktree);
    let mut wrong = Vec::new();
    mode(0o000);
    let after_modes = run("write-worktree");
    mode(0o755);
    let rights = run("leave-rights");
    let after_rights = run("write-worktree");
    let _ = rustix::fs::removexattr(git.as_str(), attack::RIGHTS);
    let after_long =
        crate::run(&plan(&too_long, mechanism, Role::Agent(AgentKind::Claude), "write-worktree", port));
    for (what, (outcome, said)) in [
        ("modes", after_modes),
        ("leave rights", rights),
        ("rights", after_rights),
        ("a long path", after_long),
    ] {
        if outcome != Outcome::Open {
            wrong.push(format!("{what}: {outcome:?} {said}"));
        }
    }
    for name in ["commondir", "config.worktree", "remotes", "objects/info/alternates"] {
        let is_users = name == "config.worktree";
        if git.join(name).symlink_metadata().is_ok() != is_users {
            wrong.push(format!("{name} is left, or gone"));
        }
    }
    if kept != protected(&places.git.as_ref().unwrap().own, &places.worktree) {
        wrong.push("what is protected is not as before".to_owned());
    }
    println!(
        "{mechanism:?} after rights were taken: {}",
        if wrong.is_empty() { "started" } else { "<-- WRONG" }
    );
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    u32::from(!wrong.is_empty())
}

fn plan(places: &Places, mechanism: Mechanism, role: Role, attempt: &str, port: u16) -> Plan {
    let home = &places.home;
    let spec = SandboxSpec {
        mechanism,
        processes: SandboxSpec::FEWEST_PROCESSES,
        hide: vec![home.join("project/conf/hidden")],
        ..SandboxSpec::default()
    };
    let program = std::env::current_exe().unwrap();
    let argv = [program.to_str().unwrap(), "attempt", attempt, home.as_str(), &port.to_string()];
    let policy = policy(&spec, role, places);
    let mut env = git_env();
    env.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()));
    env.push(("HOME".to_owned(), home.to_string()));
    env.extend(temporary_variables(&policy));
    let listen = if spec.has_network() { vec![PROXY_PORT] } else { Vec::new() };
    let records = RecordFolders { of_loop: home.join("records"), of_user: home.join("all-records") };
    let (dir, records) = (places.worktree.clone(), Some(records));
    Plan { argv: argv.map(str::to_owned).into(), dir, env, policy, listen, records }
}

fn run(plan: &Plan) -> (Outcome, String) {
    let (socket, theirs) = UnixStream::pair().unwrap();
    // A file that this user can write, as the prompt is.
    let prompt = tempfile::NamedTempFile::new_in(plan.dir.parent().unwrap()).unwrap();
    let is_null = plan.argv.iter().any(|word| word == MODE_OF_INPUT);
    let stdin = fs::File::open(if is_null { Path::new("/dev/null") } else { prompt.path() }).unwrap();
    send(&socket, plan, &[stdin.as_fd()]).unwrap();
    // With a folder that is open, as some terminals leave it.
    let output = Command::new("sh")
        .args(["-c", "exec 9< /; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .arg(HELPER_VERB)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .output()
        .unwrap();
    let said = format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let mut rest = Vec::new();
    let _ = (&socket).read_to_end(&mut rest);
    let outcome = match output.status.code() {
        Some(attack::GOT_THROUGH) => Outcome::Open,
        Some(attack::WAS_REFUSED) => Outcome::Refused,
        _ => Outcome::Broken,
    };
    (outcome, said)
}

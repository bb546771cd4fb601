//! Machines that cannot make a sandbox, each imitated: the cause that is found is the right one.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use refrain_core::sandbox::{Mechanism, Policy, SandboxSpec};
use refrain_sandbox::{Cause, Plan};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The first words of a command that imitates the machine, which kind of sandbox is probed, and the cause.
const MACHINES: [(&[&str], &str, Cause); 5] = [
    (&["SELF", "filtered", "unshare"], "namespaces", Cause::SeccompFilter),
    (&["SELF", "filtered", "landlock"], "files", Cause::NoLandlock),
    (
        &[
            "unshare",
            "-Ur",
            "sh",
            "-c",
            "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"",
            "sh",
            "SELF",
        ],
        "namespaces",
        Cause::NoUserNamespaces,
    ),
    (
        &["unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /proc/sys; exec \"$@\"", "sh", "SELF"],
        "namespaces",
        Cause::MaskedProc,
    ),
    (&["setpriv", "--bounding-set=-setfcap", "SELF"], "namespaces", Cause::RootWithoutCapabilities),
];

pub(crate) fn check(is_root: bool) {
    let own = std::env::current_exe().unwrap();
    for (words, mechanism, expected) in MACHINES {
        if expected == Cause::RootWithoutCapabilities && !is_root {
            continue;
        }
        let word =
            |word: &&str| if *word == "SELF" { own.to_str().unwrap().to_owned() } else { (*word).to_owned() };
        let words: Vec<String> =
            words.iter().map(word).chain(["probe", mechanism].map(str::to_owned)).collect();
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let (name, rest) = said.split_once(' ').unwrap_or((&said, ""));
        assert_eq!(name, format!("{expected:?}"), "{rest}{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Goes on without a system call, as under a container's filter or in an old kernel.
pub(crate) fn run_without(call: &str, words: &[&str]) -> ExitCode {
    let (number, error) = match call {
        "unshare" => (libc::SYS_unshare, libc::EPERM),
        _ => (libc::SYS_landlock_create_ruleset, libc::ENOSYS),
    };
    let action = SeccompAction::Errno(error.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let rules = BTreeMap::from([(number, Vec::new())]);
    let program: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch).unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
    panic!("{}", Command::new(std::env::current_exe().unwrap()).args(words).exec());
}

pub(crate) fn print_cause(mechanism: &str) -> ExitCode {
    let mechanism = if mechanism == "files" { Mechanism::Files } else { Mechanism::Namespaces };
    let policy = Policy { mechanism, processes: SandboxSpec::PROCESSES, ..Policy::default() };
    let plan = Plan {
        argv: Vec::new(),
        dir: "/".into(),
        env: Vec::new(),
        policy,
        listen: Vec::new(),
        records: None,
    };
    match refrain_sandbox::probe(&std::env::current_exe().unwrap(), &plan) {
        Ok(()) => println!("none"),
        Err((cause, refusal)) => println!("{cause:?} {refusal}"),
    }
    ExitCode::SUCCESS
}

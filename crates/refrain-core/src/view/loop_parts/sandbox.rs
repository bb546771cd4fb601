use crate::sandbox::{Mechanism, agent_hosts};
use crate::spec::Spec;
use crate::view::garbage::size;

/// The sandbox of the agent and its gates; empty if they have none.
pub fn sandbox(spec: &Spec) -> String {
    let Some(sandbox) = &spec.sandbox else { return String::new() };
    let (kind, writes) = match sandbox.mechanism {
        Mechanism::Namespaces => ("namespaces, Landlock and seccomp", "its worktree and caches"),
        Mechanism::Files => ("Landlock and seccomp", "its worktree"),
    };
    let mut text = format!("a sandbox of {kind}; writes {writes}");
    for path in &sandbox.write {
        text.push_str(&format!(", {path}"));
    }
    if !sandbox.hide.is_empty() {
        let paths: Vec<_> = sandbox.hide.iter().map(ToString::to_string).collect();
        text.push_str(&format!("; hides, besides keys and logins, {}", paths.join(", ")));
    }
    if !sandbox.has_network() {
        return text + "; reaches every host";
    }
    match (sandbox.bounds.memory, sandbox.bounds.cpus) {
        (None, None) => text.push_str("; memory and CPU are not bounded (refrain doctor says why)"),
        (memory, cpus) => {
            let memory = memory.map(|bytes| format!("memory bounded to {}", size(bytes)));
            let cpus = cpus.map(|cpus| format!("{cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" }));
            let bounds: Vec<String> = memory.into_iter().chain(cpus).collect();
            text.push_str(&format!("; {}", bounds.join(", ")));
        }
    }
    let hosts = agent_hosts(spec.agent.kind).into_iter().chain(sandbox.hosts.iter().cloned());
    let hosts: Vec<String> = hosts.map(|host| host.to_string()).collect();
    match hosts.is_empty() {
        true => text.push_str("; reaches no host"),
        false => text.push_str(&format!("; reaches {}", hosts.join(", "))),
    }
    for port in &sandbox.localhost {
        text.push_str(&format!(", localhost:{port}"));
    }
    text
}

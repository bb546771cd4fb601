//! A command that a file of the repository names: the authors of the repository chose it.

use refrain_core::gate::{Check, GateSpec};

const FILES: &str = "the project's files";

/// A command that a file of the repository names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryCommand {
    /// The shell command, as seen from the top of the worktree.
    pub command: String,
    pub from: String,
}

impl RepositoryCommand {
    /// A command that the project's manifests offer, for a gate that runs in this folder of the worktree or another.
    pub fn offered(command: &str) -> Self {
        Self { command: from_top(command).to_owned(), from: FILES.to_owned() }
    }

    pub fn is_offered(&self) -> bool {
        self.from == FILES
    }
}

/// The commands of gates that the project's manifests offer.
pub fn of_gates(gates: &[GateSpec]) -> impl Iterator<Item = RepositoryCommand> {
    gates.iter().filter_map(|gate| match &gate.check {
        Check::Command(command) => Some(RepositoryCommand::offered(command)),
        Check::Review(_) => None,
    })
}

/// An offered command without the way from the folder of the gate to the top of the worktree.
fn from_top(command: &str) -> &str {
    let Some((way, rest)) = command.strip_prefix("cd ").and_then(|command| command.split_once(" && ")) else {
        return command;
    };
    if way.split('/').all(|part| part == "..") { rest } else { command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offered_command_is_the_same_from_any_folder() {
        for (command, top) in [
            ("make test", "make test"),
            ("cd .. && make test", "make test"),
            ("cd ../.. && cd web && npm test", "cd web && npm test"),
            ("cd web && npm test", "cd web && npm test"),
        ] {
            assert_eq!(from_top(command), top);
        }
    }
}

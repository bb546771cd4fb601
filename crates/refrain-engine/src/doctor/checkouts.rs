//! Clean checkouts of projects that no longer exist: their caches will never be used again. And how much room `refrain gc`
//! would make.

use std::collections::BTreeMap;

use refrain_core::text::printable;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::view::garbage::{GarbageKind, size};
use refrain_git::GitError;
use refrain_store::project::checkout;

use super::cure::{Cure, Diagnosis};
use crate::{EngineError, Service, chain};

pub(super) fn look(service: &Service) -> Vec<Diagnosis> {
    let of = |(home, root): (camino::Utf8PathBuf, camino::Utf8PathBuf)| {
        let found = format!("a clean checkout of {}, which is gone", printable(root.as_str()));
        let finding = Finding::warning(Subject::Worktrees, found, "refrain doctor --fix removes it");
        Diagnosis::with(finding.about(home.as_str()), Cure::RemoveCheckouts(home))
    };
    checkout::orphaned(&service.host().state_home).into_iter().map(of).collect()
}

/// What loops left that nothing needs.
pub(super) fn room(service: &Service) -> Option<Diagnosis> {
    let finding = match service.garbage_on_disk() {
        Ok(all) if all.is_empty() => return None,
        Ok(all) => {
            let mut sums: BTreeMap<GarbageKind, (u32, u64)> = BTreeMap::new();
            for garbage in &all {
                let sum = sums.entry(garbage.kind).or_default();
                *sum = (sum.0 + 1, sum.1 + garbage.bytes);
            }
            let sums: Vec<_> = sums
                .into_iter()
                .map(|(kind, (count, bytes))| format!("{count} × {} {}", kind.label(), size(bytes)))
                .collect();
            let all = size(all.iter().map(|garbage| garbage.bytes).sum());
            Finding::ok(Subject::Worktrees, format!("refrain gc frees {all}: {}", sums.join(", ")))
        }
        // The look at git names it.
        Err(EngineError::Git(GitError::Bare(_))) => return None,
        Err(error) => Finding::warning(
            Subject::Worktrees,
            format!("what refrain gc would free is not known: {}", chain(&error)),
            "refrain gc says more",
        ),
    };
    Some(finding.into())
}

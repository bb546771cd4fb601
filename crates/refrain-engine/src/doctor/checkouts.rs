//! Clean checkouts of projects that no longer exist: their caches will never be used again.

use refrain_core::text::printable;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_store::project::checkout;

use super::cure::{Cure, Found};
use crate::Service;

pub(super) fn look(service: &Service) -> Vec<Found> {
    let of = |(home, root): (camino::Utf8PathBuf, camino::Utf8PathBuf)| {
        let found = format!("a clean checkout of {}, which is gone", printable(root.as_str()));
        let finding = Finding::warning(Subject::Worktrees, found, "refrain doctor --fix removes it");
        Found::with(finding.about(home.as_str()), Cure::RemoveCheckouts(home))
    };
    checkout::orphaned(&service.host().state_home).into_iter().map(of).collect()
}

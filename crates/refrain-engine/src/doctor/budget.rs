//! The money that loops share: whether the ledger can be read, and which reservations no living runner will settle.

use refrain_core::budget::Reservation;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_proc::identity;
use refrain_store::LedgerFile;

use super::cure::Diagnosis;
use crate::chain;
use crate::host::Host;

pub(super) fn look(host: &Host) -> Vec<Diagnosis> {
    let ledger = match LedgerFile::new(&host.state_home).read() {
        Ok(ledger) => ledger,
        Err(error) => {
            let advice = "until then nothing is started under a cap of [budget]";
            return vec![Finding::problem(Subject::Budget, chain(&error), advice).into()];
        }
    };
    let found: Vec<Diagnosis> = ledger.open().iter().filter_map(stale).map(Diagnosis::from).collect();
    if found.is_empty() {
        return vec![Finding::ok(Subject::Budget, "no dead runner holds money that loops share").into()];
    }
    found
}

/// The finding about a reservation; none if its runner lives.
fn stale(it: &Reservation) -> Option<Finding> {
    let (found, advice) = match identity::is_alive(&it.runner) {
        Some(true) => return None,
        Some(false) => (
            format!("{} reserved by a runner that died", it.amount),
            "the next loop that starts an agent takes it back, and counts what was used".to_owned(),
        ),
        None => (
            format!("{} reserved by a runner on {}", it.amount, it.runner.host),
            "whether that lives is not to be seen from here; where it died, resume its loop there".to_owned(),
        ),
    };
    Some(Finding::warning(Subject::Budget, found, advice).about(it.of.as_str()))
}

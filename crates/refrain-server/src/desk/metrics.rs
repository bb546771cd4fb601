//! The metrics of all loops for a scraper.

use jiff::tz::TimeZone;
use refrain_core::view::metrics;
use refrain_core::view::usage::By;
use refrain_engine::{Detail, Listed};

use super::{Desk, Refusal};

impl Desk {
    /// Usage and status of all loops in the text format of Prometheus: of all projects if all are open, else of the
    /// first. An unreadable project is omitted.
    pub(crate) fn metrics(&self) -> Result<String, Refusal> {
        let service = self.whole()?;
        let used = service.used(self.everywhere, None, By::Agent, &TimeZone::UTC, true)?;
        let listed = service.list_with(self.everywhere, Detail::Line)?;
        let words = listed.iter().filter_map(|row| match row {
            Listed::Loop(brief) => Some(brief.status),
            Listed::Damaged(_) => None,
        });
        Ok(metrics::prometheus(&used.report, &used.series, words))
    }
}

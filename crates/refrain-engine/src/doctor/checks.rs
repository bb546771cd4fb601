//! Runs all checks, one after the other; only the agents' programs are asked meanwhile, as they take their time.

use refrain_core::view::checkup::Checkup;

use super::cure::Diagnosis;
use super::{
    agents, autostart, budget, checkouts, configuration, data_folders, git, leftovers, loops, machine, pool,
};
use crate::Service;

impl Service {
    /// Checks everything that could hinder a loop of this project. With `fix`, what can be mended safely is mended, and
    /// the finding says so. `variables` as for [`settings`](Self::settings).
    pub fn examine(&self, fix: bool, variables: bool) -> Checkup {
        let found: Vec<Diagnosis> = std::thread::scope(|scope| {
            let agents = scope.spawn(|| agents::look(self));
            let mut found = configuration::look(self, variables);
            found.extend(git::look(self));
            found.extend(data_folders::look(self));
            found.extend(machine::look());
            found.extend(machine::sandbox(self, variables));
            found.extend(budget::look(self.host()));
            found.extend(agents::plugins(self.host()));
            let of_loops = loops::look(self);
            found.extend(leftovers::look(self.host(), of_loops.iter().any(Diagnosis::is_of_processes)));
            found.extend(of_loops);
            found.extend(checkouts::look(self));
            found.extend(pool::look(self, variables));
            found.extend(checkouts::room(self));
            found.extend(autostart::look(self.host()));
            match agents.join() {
                Ok(agents) => found.extend(agents),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            found
        });
        let told = found.into_iter().map(|found| if fix { found.mended() } else { found.told() });
        Checkup::of(told.collect())
    }
}

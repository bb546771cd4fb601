//! The installed plugins of agents, and the program that they call.

use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::view::plugin::Standing;

use super::agents::KNOWN;
use super::cure::Found;
use crate::Host;

pub(super) fn look(host: &Host) -> Vec<Found> {
    let mut found = Vec::new();
    for agent in KNOWN {
        // Without a home there is no plugin; what cannot be read is said by `plugin status`.
        let Ok(status) = host.plugin_status(agent) else { continue };
        let install = format!("refrain plugin install {agent}");
        let about_plugin = |finding: Finding| finding.about(agent.to_string()).into();
        if let Some((program, why)) = status.program.as_ref().zip(status.problem.as_ref()) {
            let text = format!("its plugin calls {program}, which a shell cannot run: {why}");
            found.push(about_plugin(Finding::problem(Subject::Agent, text, install)));
            continue;
        }
        match status.standing {
            Standing::NotInstalled => {}
            Standing::Installed => {
                found.push(about_plugin(Finding::ok(Subject::Agent, "the plugin is installed")));
            }
            Standing::Older | Standing::Partly => {
                let text = format!("the plugin is {}", status.standing.as_str());
                found.push(about_plugin(Finding::warning(Subject::Agent, text, install)));
            }
        }
    }
    found
}

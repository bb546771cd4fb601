use std::process::ExitCode;

use clap::ValueEnum;
use owo_colors::OwoColorize;
use refrain_app::{Action, Code, Context, RequestError};
use refrain_core::text::printable;
use refrain_core::view::checkup::{Checkup, Finding, Fix, Grade};
use refrain_engine::{Autostart, AutostartChange};

use crate::cmd::connect::fleet;
use crate::out;

use crate::render::phrase;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The exit code is 0 if nothing is a problem, else 1. The agents' own programs are asked only for \
    their version and login. Refrain itself connects to another machine with --fleet only.\n\nExamples:\n  refrain doctor\n  refrain doctor --fix\n  refrain doctor --fleet"
)]
pub(crate) struct Args {
    /// Repair what can be repaired safely: end orphan processes, remove stale locks, make folders private
    #[arg(long)]
    fix: bool,
    /// Check the fleet instead: its server, its git remote, its workers
    #[arg(long, conflicts_with_all = ["fix", "autostart"])]
    fleet: bool,
    /// Print all findings as one object
    #[arg(long)]
    json: bool,
    /// Resume loops by themselves after a reboot, with a systemd service of your user; on without a value
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", hide_possible_values = true,
        conflicts_with_all = ["fix", "json"])]
    autostart: Option<Switch>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Args {
    /// The verb's action, for [`Action::permission`].
    pub(crate) fn action(&self) -> Action {
        match (self.autostart, self.fix) {
            (Some(_), _) => Action::Autostart,
            (None, true) => Action::Repair,
            (None, false) => Action::Look,
        }
    }
}

/// Prints the findings; with `--fix`, also the repairs.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    if let Some(switch) = args.autostart {
        let change = context.host.switch_autostart(switch == Switch::On)?;
        out::print(&told(&change));
        return Ok(Code::Done.into());
    }
    let checkup = match args.fleet {
        true => Checkup::of(fleet::examine(context)?),
        false => context.service()?.examine(args.fix, context.has_variables()),
    };
    if args.json {
        out::print_json(&checkup)?;
    } else {
        out::print(&text(&checkup, out::terminal_width()));
    }
    Ok(match checkup.grade {
        Grade::Ok | Grade::Warning => Code::Done,
        Grade::Problem => Code::Failed,
    }
    .into())
}

/// A line for each finding, followed by what to do.
fn text(checkup: &Checkup, width: Option<usize>) -> String {
    let mut text: String = checkup.findings.iter().map(|finding| lines(finding, width)).collect();
    let count =
        |count: usize, one, many| phrase::counted(u32::try_from(count).unwrap_or(u32::MAX), one, many);
    let fixable = checkup.findings.iter().filter(|finding| finding.fix == Some(Fix::Possible)).count();
    text.push_str(&format!(
        "\n{}, {}",
        count(checkup.problems, "problem", "problems"),
        count(checkup.warnings, "warning", "warnings")
    ));
    if fixable > 0 {
        text.push_str(&format!("; refrain doctor --fix can repair {fixable}"));
    }
    text.push('\n');
    text
}

/// How far the longest grade and the longest subject reach.
const GRADES: usize = 7;
const SUBJECTS: usize = 13;
const SAID: usize = GRADES + SUBJECTS + 4;

fn lines(finding: &Finding, width: Option<usize>) -> String {
    let flat = |text: &str| printable(text).replace('\n', " ");
    let grade = format!("{:<GRADES$}", finding.grade.as_str());
    let grade = match finding.grade {
        Grade::Ok => grade.green().to_string(),
        Grade::Warning => grade.yellow().bold().to_string(),
        Grade::Problem => grade.red().bold().to_string(),
    };
    let about = finding.about.as_deref().map(|about| format!("{}: ", flat(about))).unwrap_or_default();
    let subject = finding.subject.as_str();
    let begin = format!("{grade}  {subject:<SUBJECTS$}  ");
    let below = phrase::indent(SAID, width);
    // If there is no room beside them, the text begins below them.
    let (above, begin) = if below.len() == SAID {
        (String::new(), begin.as_str())
    } else {
        (begin.trim_end().to_owned() + "\n", below.as_str())
    };
    let said = phrase::broken(begin, SAID, &format!("{about}{}", flat(&finding.found)), width);
    let advice = finding.advice.as_deref().map(|advice| format!("to do: {}", flat(advice)));
    let advice = advice.map(|advice| phrase::broken(&below, SAID, &advice, width) + "\n");
    format!("{above}{said}\n{}", advice.unwrap_or_default())
}

/// What was done, what it means, and how to undo it.
fn told(change: &AutostartChange) -> String {
    match change {
        AutostartChange::WasOff(_) => "autostart was not on\n".to_owned(),
        AutostartChange::Off(unit) => format!(
            "autostart is off: {} and the link to it are removed\n\
             loops that it resumed run on\n",
            printable(unit.as_str())
        ),
        AutostartChange::On(Autostart { unit, link, is_started, lingers, left_out }) => {
            let mut told = format!(
                "autostart is on: loops that a reboot interrupts continue by themselves\n  \
                 written: {}\n  linked:  {}\n  undo:    refrain doctor --autostart off\n",
                printable(unit.as_str()),
                printable(link.as_str()),
            );
            if !is_started {
                told.push_str(
                    "it counts from your next login on, or from now on with:\n  \
                     systemctl --user daemon-reload\n  systemctl --user start refrain-resume.service\n",
                );
            }
            if !lingers {
                told.push_str(
                    "they continue when you log in; to continue them at boot: loginctl enable-linger\n",
                );
            }
            if !left_out.is_empty() {
                told.push_str(&format!(
                    "not written, as they are secret: {}; put them into ~/.config/environment.d/ or log in to the agent\n",
                    left_out.join(", ")
                ));
            }
            told
        }
    }
}

#[cfg(test)]
mod tests {
    use refrain_core::view::checkup::Subject;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_finding_is_printed_with_its_remedy_on_the_next_line() {
        let checkup = Checkup::of(vec![
            Finding::ok(Subject::Git, "git 2.47.3"),
            Finding::warning(Subject::FileSystem, "NFS\u{1b}[2J\nagain", "use a local one").about("/mnt"),
        ]);
        let expected = "ok       git            git 2.47.3\n\
             warning  file-system    /mnt: NFS again\n                        to do: use a local one\n\n\
             0 problems, 1 warning\n";
        assert_eq!(plain(&text(&checkup, None)), expected);
        let narrow = "ok       git\n  git 2.47.3\n\
             warning  file-system\n  /mnt: NFS again\n  to do: use a local one\n\n0 problems, 1 warning\n";
        assert_eq!(plain(&text(&checkup, Some(40))), narrow);
    }
}

//! The options of `start` that say which gates prove a loop's work.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use refrain_core::gate::Offer;
use refrain_core::gate::{Check, DefaultGates, GateEnv, GateName, GateSource, GateSpec, GateWhen};
use refrain_core::protect::ProtectedPaths;
use refrain_core::spec::{Millis, ProtectSpec};
use refrain_core::values::GateVariable;
use refrain_engine::config::keys::{Config, Gate, GateMoment, Gates};

use super::{heading, values};
use crate::error::RequestError;
use crate::repository_command::{RepositoryCommand, of_gates};

// What proves the work.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = heading::PROOF)]
pub struct GateArgs {
    /// Add a required gate: a shell command that exits with 0 if the work is good; NAME defaults to its program
    #[arg(long, value_name = "[NAME=]CMD")]
    pub gate: Vec<GateOption>,
    /// Add an advisory gate: its result is shown and does not decide
    #[arg(long, value_name = "[NAME=]CMD")]
    pub soft_gate: Vec<GateOption>,
    /// Complete the loop when CMD and all required gates pass
    ///
    /// Adds a required gate named success. It runs after each iteration, whatever the agent says.
    #[arg(long, value_name = "CMD", value_parser = command)]
    pub success_command: Option<String>,
    /// Start even if the program of a gate is missing
    ///
    /// For a program that the agent is to create.
    #[arg(long)]
    pub allow_missing_gates: bool,
    /// Use the gates that the project's files offer, and protect the files that they depend on
    #[arg(long)]
    pub auto_gates: bool,
    /// Freeze matching paths, relative to the top of the worktree: a claim is refused if one was touched
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub protect: Vec<String>,
    /// Keep matching files as they are; new ones may be added
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub protect_existing: Vec<String>,
    /// How long a gate may take [default: 10m]
    #[arg(long, value_name = "DUR", allow_negative_numbers = true, value_parser = values::duration)]
    pub gate_timeout: Option<Millis>,
    /// How often a failing gate is tried again, 0 to 100; if it then passes, it counts as passed and as flaky
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| values::whole_number(text, 0u32..=100))]
    pub gate_retries: Option<u32>,
    /// When gates run, besides once before the first iteration [default: iteration]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub gate_when: Option<Moment>,
    /// Set a variable for gates; a NAME alone passes Refrain's own value
    ///
    /// Gates that are commands get no REFRAIN_ variable otherwise.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub gate_env: Vec<GateVariable>,
    /// Run gates in a clean checkout elsewhere: the files of a commit, and the caches of the gates before the first iteration
    #[arg(long)]
    pub clean_checkout: bool,
    /// Require your approval before the loop completes (refrain approve)
    #[arg(long)]
    pub require_approval: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Moment {
    /// After each iteration that changed something, and after each claim
    Iteration,
    /// After a claim only
    Claim,
}

/// `[NAME=]CMD`.
#[derive(Clone, Debug)]
pub struct GateOption {
    name: Option<GateName>,
    command: String,
}

impl fmt::Display for GateOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}={}", self.command),
            None => f.write_str(&self.command),
        }
    }
}

impl FromStr for GateOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((word, rest)) = text.split_once('=') else {
            return Ok(Self { name: None, command: command(text)? });
        };
        match word.parse::<GateName>() {
            Ok(name) => Ok(Self { name: Some(name), command: command(rest)? }),
            // A name was meant that is none: `=./check`, `Unit-Tests=./check`, `unit/tests=./check`.
            Err(error) if is_name(word) && !is_variable(word) => Err(error.to_string()),
            Err(error) if only_sets(text) => Err(format!("it checks nothing: {error}")),
            // A variable that the command gets.
            Err(_) => Ok(Self { name: None, command: command(text)? }),
        }
    }
}

fn command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() || text.contains('\0') {
        true => Err("accepted: a shell command".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Whether `text` may have been meant as a name: it is one word, and a shell finds nothing to expand in it.
fn is_name(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || "$`\"'\\|&;<>(){}[]*?~!#%".contains(c))
}

/// Whether a shell can set `text` as a variable.
fn is_variable(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
}

/// Whether a shell would only set variables for `command`, which always succeeds.
fn only_sets(command: &str) -> bool {
    let sets = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    // These characters begin another command, or one with the same end as the assignment.
    !command.contains([';', '&', '|', '(', '`', '\n'])
        && shlex::split(command).is_some_and(|words| words.iter().all(sets))
}

fn glob(text: &str) -> Result<String, String> {
    let glob = [text.to_owned()];
    ProtectedPaths::new(&glob, &[]).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

// What proves the work, and what of that a person should know.
#[derive(Debug, Default)]
pub struct Proof {
    pub gates: Vec<GateSpec>,
    pub env: GateEnv,
    pub protect: ProtectSpec,
    pub notes: Vec<String>,
    /// The commands of those gates that the project's files offer.
    pub offered: Vec<RepositoryCommand>,
    pub default_gates: DefaultGates,
    /// Gates that it would take by default if they were trusted.
    pub untrusted_gates: DefaultGates,
}

impl GateArgs {
    /// One more check that decides, as if `--gate NAME=CMD` had been given.
    pub fn add(&mut self, name: &str, command: &str) -> Result<(), RequestError> {
        let name = name.parse::<GateName>().map_err(|error| RequestError::usage(error.to_string()))?;
        self.gate.push(GateOption { name: Some(name), command: command.to_owned() });
        Ok(())
    }

    /// The same for one that only informs.
    pub fn add_advisory(&mut self, name: &str, command: &str) -> Result<(), RequestError> {
        let name = name.parse::<GateName>().map_err(|error| RequestError::usage(error.to_string()))?;
        self.soft_gate.push(GateOption { name: Some(name), command: command.to_owned() });
        Ok(())
    }

    /// Whether a gate is named, here or by the configuration.
    pub fn names_gate(&self, config: &Config) -> bool {
        let is_given = !self.gate.is_empty() || !self.soft_gate.is_empty() || self.success_command.is_some();
        is_given || config.gates.named().next().is_some()
    }

    /// Whether the project's gates are asked for, here or by the configuration.
    pub fn auto_gates(&self, config: &Config) -> Option<bool> {
        self.auto_gates.then_some(true).or(config.start.auto_gates)
    }

    /// How long a gate may take, where that is said here.
    pub fn timeout(&self) -> Option<Millis> {
        self.gate_timeout
    }

    /// Whether a command decides about the work, as far as that is said, here or by the configuration.
    pub fn decide(&self, config: &Config) -> bool {
        let is_said = !self.gate.is_empty() || self.success_command.is_some() || self.auto_gates;
        let by_config = config.gates.named().any(|(_, gate)| gate.hard && gate.command.is_some());
        is_said || by_config || self.auto_gates(config) == Some(true)
    }

    /// The gates and protections that were given, then those of `offer`, if they are asked for or the default.
    pub fn proof(
        &self,
        source: GateSource,
        config: &Config,
        review: Option<Check>,
        check: impl Fn(&str, &Gate) -> Result<Check, RequestError>,
        offer: impl FnOnce() -> Result<Offer, RequestError>,
        is_trusted: impl Fn(&GateSpec) -> bool,
    ) -> Result<Proof, RequestError> {
        let none = Gates::default();
        let configured = if source == GateSource::Nowhere { &none } else { &config.gates };
        let mut gates = self.specs(configured, review, check)?;
        let both = |configured: &[String], given: &[String]| [configured, given].concat();
        let mut protect = ProtectSpec {
            frozen: both(&config.protect.frozen, &self.protect),
            existing: both(&config.protect.existing, &self.protect_existing),
            ..ProtectSpec::default()
        };
        let (mut notes, mut offered) = (Vec::new(), Vec::new());
        let (mut default_gates, mut untrusted_gates) = (DefaultGates::default(), DefaultGates::default());
        if source == GateSource::Default {
            // Gates by default refuse no start.
            match offer() {
                Ok(mut offer) => {
                    let when = self.when().unwrap_or(GateWhen::Auto);
                    let applied = |gate| GateSpec { when, ..self.applied(gate) };
                    offer.gates = offer.gates.into_iter().map(applied).collect();
                    notes = std::mem::take(&mut offer.notes);
                    (default_gates, untrusted_gates) = DefaultGates::split(offer, is_trusted);
                    // Without a test the header says how to add a gate.
                    notes.retain(|_| default_gates.gates.iter().any(|gate| gate.hard));
                }
                Err(error) => {
                    notes.push(format!("the project's gates were not looked for: {}", error.line()))
                }
            }
        } else if source == GateSource::Offered {
            let offer = offer()?;
            for gate in offer.gates {
                let is_given = |given: &GateSpec| given.name == gate.name || given.check == gate.check;
                if !gates.iter().any(is_given) {
                    offered.extend(of_gates(std::slice::from_ref(&gate)));
                    gates.push(self.applied(gate));
                }
            }
            if gates.is_empty() {
                let error = format!("--auto-gates: {}", offer.notes.join("; "));
                return Err(
                    RequestError::usage(error).hint("accepted: a project with tests, or --gate CMD with it")
                );
            }
            gates.sort_by_key(GateSpec::is_review);
            protect.frozen.extend(offer.protect);
            protect.existing.extend(offer.protect_existing);
            (protect.parts, protect.modules) = (offer.parts, offer.modules);
            notes = offer.notes;
        }
        // Of one name the last counts.
        let variables = config.gates.variables().iter().chain(&self.gate_env);
        let variables = variables.cloned().map(|GateVariable { name, value }| (name, value)).collect();
        let env = GateEnv { variables, ..GateEnv::default() };
        Ok(Proof { gates, env, protect, notes, offered, default_gates, untrusted_gates })
    }

    /// An offered gate, with what the options say of all gates.
    fn applied(&self, gate: GateSpec) -> GateSpec {
        GateSpec {
            timeout: self.gate_timeout.unwrap_or(gate.timeout),
            retries: self.gate_retries.unwrap_or(gate.retries),
            when: self.when().unwrap_or(gate.when),
            ..gate
        }
    }

    /// The gates: those of the configuration, then those that decide, then those that inform. What an option says of all of
    /// them holds for configured ones too; a gate of a configured one's name takes its place. `review` is the gate that an
    /// agent is, `check` what a configured one checks. Agents come last: they cost, and are spared where something failed.
    fn specs(
        &self,
        configured: &Gates,
        review: Option<Check>,
        check: impl Fn(&str, &Gate) -> Result<Check, RequestError>,
    ) -> Result<Vec<GateSpec>, RequestError> {
        let success = self.success_command.as_ref().map(|command| {
            let name = "success".parse().map_err(|error| RequestError::usage(format!("{error}")))?;
            Ok::<_, RequestError>(GateOption { name: Some(name), command: command.clone() })
        });
        let success = success.transpose()?;
        let hard = self.gate.iter().map(|asked| (asked, true, false));
        let hard = hard.chain(success.iter().map(|asked| (asked, true, true)));
        let given: Vec<_> = hard.chain(self.soft_gate.iter().map(|asked| (asked, false, false))).collect();
        let mut names: Vec<GateName> = Vec::new();
        for name in given.iter().filter_map(|(asked, ..)| asked.name.as_ref()) {
            if names.contains(name) {
                return Err(RequestError::usage(format!("{name}: two gates have this name; accepted: one")));
            }
            names.push(name.clone());
        }
        if review.is_some() && names.iter().any(|name| name.as_str() == "spec") {
            let error =
                "spec: the reviewer of --spec-gate has this name; accepted: another name for the gate";
            return Err(RequestError::usage(error));
        }
        let mut specs = Vec::new();
        for (name, gate) in configured.named() {
            let name: GateName =
                name.parse().map_err(|error| RequestError::usage(format!("gates.{name}: {error}")))?;
            if !names.contains(&name) {
                names.push(name.clone());
                let check = check(name.as_str(), gate)?;
                specs.push(self.configured(name, gate, check));
            }
        }
        for (GateOption { name, command }, hard, completes) in given {
            let name = name.clone().unwrap_or_else(|| {
                let name = GateName::of_command(command).apart_from(&names);
                names.push(name.clone());
                name
            });
            specs.push(GateSpec {
                name,
                check: Check::Command(command.clone()),
                hard,
                timeout: self.gate_timeout.unwrap_or(GateSpec::TIMEOUT),
                retries: self.gate_retries.unwrap_or_default(),
                // The gate that completes the loop runs after each iteration, even if `--gate-when` says otherwise for
                // the others.
                when: self.when().filter(|_| !completes).unwrap_or_default(),
                completes,
                own_tests: false,
                by_default: false,
            });
        }
        if let Some(check) = review {
            let name = "spec".parse::<GateName>().map_err(|error| RequestError::usage(format!("{error}")))?;
            specs.push(GateSpec {
                name: name.apart_from(&names),
                check,
                hard: true,
                timeout: self.gate_timeout.unwrap_or(GateSpec::TIMEOUT),
                retries: self.gate_retries.unwrap_or_default(),
                when: self.when().unwrap_or(GateWhen::Claim),
                completes: false,
                own_tests: false,
                by_default: false,
            });
        }
        specs.sort_by_key(GateSpec::is_review);
        Ok(specs)
    }

    /// Whether they run in a clean checkout; where there are none, nothing does.
    pub fn are_clean(&self, configured: Option<bool>) -> bool {
        self.clean_checkout || configured.unwrap_or_default()
    }

    fn configured(&self, name: GateName, gate: &Gate, check: Check) -> GateSpec {
        let when = match (gate.when, &check) {
            (Some(GateMoment::Iteration), _) | (None, Check::Command(_)) => GateWhen::Iteration,
            (Some(GateMoment::Claim), _) | (None, Check::Review(_)) => GateWhen::Claim,
        };
        GateSpec {
            name,
            check,
            hard: gate.hard,
            timeout: self.gate_timeout.or(gate.timeout).unwrap_or(GateSpec::TIMEOUT),
            retries: self.gate_retries.unwrap_or(gate.retries),
            when: self.when().unwrap_or(when),
            completes: false,
            own_tests: false,
            by_default: false,
        }
    }

    fn when(&self) -> Option<GateWhen> {
        Some(match self.gate_when? {
            Moment::Iteration => GateWhen::Iteration,
            Moment::Claim => GateWhen::Claim,
        })
    }
}

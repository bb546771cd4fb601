//! The layers of the configuration, from below: the user's file, the project's file if it is trusted, variables, and
//! what the command line says to run. Whole values replace each other, and whole entries of named tables do.
//!
//! Values in one layer beside an `agent` or a `command` describe it, and go with it when a higher layer names another.
//! A named agent's own values stand right below the layer that names it.

use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::budget::Caps;
use refrain_core::price::Price;
use refrain_core::sandbox::SandboxMode;
use refrain_core::spec::AgentKind;

use super::caps::only_lowers;
use super::keys::Config;
use super::memory::refuse_in_a_project;
use super::setting::{ConfigError, Origin, Setting, Values};
use super::{file, nearest, variables};
use crate::access::trust::{Content, Trust};
use crate::project::layout::Project;

#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The user's config home for Refrain.
    pub config_home: &'a Utf8Path,
    /// The user's state home for Refrain, where trust is kept.
    pub state_home: &'a Utf8Path,
    /// The project, and the worktree with the file that counts.
    pub project: &'a Project,
    /// The project's file counts for this request, whether it is trusted or not.
    pub trusts_once: bool,
    /// The environment. Empty inside an attempt: variables there were set for the agent, by Refrain or by others.
    pub variables: &'a [(OsString, OsString)],
}

#[derive(Clone, Copy, Debug, Default)]
pub struct AgentChoice<'a> {
    /// `--agent`: an adapter or a named agent.
    pub agent: Option<&'a str>,
    /// Whether there is a `--command`.
    pub command: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectFile {
    Absent,
    Trusted(Utf8PathBuf),
    /// It counts as not there.
    Untrusted(Utf8PathBuf),
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// The values that hold: a named agent's are in `start`.
    pub config: Config,
    pub project_file: ProjectFile,
    /// The caps that the project's file sets, if it counts.
    pub project_caps: Caps,
    /// The path of the user's file, which may be missing.
    pub user_file: Utf8PathBuf,
    /// The values as they were given, named agents under their names.
    pub(super) given: Values,
    resolved: Values,
}

pub fn load(places: Places<'_>, chosen: AgentChoice<'_>) -> Result<Settings, ConfigError> {
    let user_file = file::user_place(places.config_home);
    let mut layers = Vec::new();
    let (mut user_caps, mut project_caps) = (Caps::default(), Caps::default());
    let mut user_sandbox = SandboxMode::default();
    if let Some(file) = file::user_file(places.config_home)? {
        let layer = file.layer()?;
        user_caps = Caps::from(&layer.config.budget);
        user_sandbox = layer.config.sandbox.mode.unwrap_or_default();
        layers.push(layer.given);
    }
    let project_file = match file::project_file(places.project)? {
        None => ProjectFile::Absent,
        Some(file)
            if places.trusts_once
                || Trust::new(places.state_home)
                    .is_trusted(&places.project.root, Content::File(&file.text)) =>
        {
            let mut layer = file.layer()?;
            refuse_in_a_project(&layer.given, &user_file)?;
            project_caps = Caps::from(&layer.config.budget);
            only_lowers(&mut layer.given, &user_caps, &project_caps);
            // It may ask for a person, and not do without one whom its user wants to be asked.
            layer.given.retain(|path, given| {
                *path != start("require-approval") || given.value.as_bool() == Some(true)
            });
            // It may ask for a sandbox, and not do without one.
            let asked = layer.config.sandbox.mode.unwrap_or_default();
            layer
                .given
                .retain(|path, _| *path != ["sandbox", "mode"] || asked.is_stricter_than(user_sandbox));
            layers.push(layer.given);
            ProjectFile::Trusted(file.path)
        }
        Some(file) => ProjectFile::Untrusted(file.path),
    };
    layers.push(variables::layer(places.variables)?);

    // Twice: an agent may be named in a lower layer than the one that describes it.
    let (mut given, mut resolved) = (Values::new(), Values::new());
    for (number, layer) in layers.iter().enumerate() {
        lay(&mut given, layer, number, None);
    }
    for (number, layer) in layers.iter().enumerate() {
        lay(&mut resolved, layer, number, Some(&given));
    }
    if chosen.command {
        forget_agent(&mut resolved);
    }
    let said = chosen.agent.map(|agent| {
        let value = toml::Value::String(agent.to_owned());
        (start("agent"), Setting::new(value, Origin::Option("--agent")))
    });
    lay(&mut resolved, &said.into_iter().collect(), layers.len(), Some(&given));
    let config = config(&resolved)?;
    let settings = Settings { config, project_file, project_caps, user_file, given, resolved };
    settings.knows_its_agent()?;
    Ok(settings)
}

impl Settings {
    /// The origin of a value of `[start]` that holds.
    pub fn origin(&self, name: &str) -> Origin {
        self.origin_of("start", name)
    }

    /// The origin of a value of another table that holds.
    pub fn origin_of(&self, table: &str, name: &str) -> Origin {
        let path = [table.to_owned(), name.to_owned()];
        self.resolved.get(path.as_slice()).map_or(Origin::Default, |given| given.origin.clone())
    }

    /// Refuses a name that no agent has.
    fn knows_its_agent(&self) -> Result<(), ConfigError> {
        let agent = self.config.start.agent.as_deref();
        match agent.and_then(|name| unknown_agent(name, &self.config)) {
            Some(what) => Err(ConfigError::Wrong { at: self.origin("agent"), what }),
            None => Ok(()),
        }
    }

    pub fn price(&self, model: &str) -> Option<Price> {
        self.config.prices.get(model).copied().map(Price::from)
    }
}

/// Why there is no agent of this name, if there is none.
pub(super) fn unknown_agent(name: &str, config: &Config) -> Option<String> {
    if AgentKind::named(name).is_some() || config.agents.contains_key(name) {
        return None;
    }
    let kinds = AgentKind::ALL.map(|kind| kind.to_string());
    let names: Vec<&str> = kinds.iter().chain(config.agents.keys()).map(String::as_str).collect();
    let meant = nearest(name, names.iter().copied()).map(|meant| format!("; did you mean {meant}?"));
    let accepted = names.join(", ");
    Some(format!("there is no agent {name:?}; accepted: {accepted}{}", meant.unwrap_or_default()))
}

/// Keys of `[start]` that describe an agent.
const BESIDE: [&str; 7] =
    ["agent", "command", "agent-arg", "model", "permissions", "prompt-mode", "output-format"];

fn start(name: &str) -> Vec<String> {
    vec!["start".to_owned(), name.to_owned()]
}

/// Lays one layer on those below. With `agents`, a named agent is put in place of its name, if there is one.
fn lay(values: &mut Values, layer: &Values, number: usize, agents: Option<&Values>) {
    if [start("agent"), start("command")].iter().any(|path| layer.contains_key(path)) {
        forget_agent(values);
    }
    let is_named = |path: &[String]| path.len() > 2 && path[0] != "start";
    for path in layer.keys().filter(|path| is_named(path)) {
        values.retain(|other, _| other.get(..2) != path.get(..2));
    }
    let agent = layer.get(&start("agent")).and_then(|given| given.value.as_str());
    let expanded = agent.zip(agents).map(|(name, agents)| expand(name, agents)).unwrap_or_default();
    let own = layer.iter().filter(|(path, _)| expanded.is_empty() || **path != start("agent"));
    let own: Vec<_> = own.map(|(path, given)| (path.clone(), given.clone())).collect();
    for (path, given) in expanded.into_iter().chain(own) {
        values.insert(path, Setting { layer: number, ..given });
    }
}

/// A higher layer names another agent: the agent of a lower one is dropped, with the values beside it.
fn forget_agent(values: &mut Values) {
    let said = [start("command"), start("agent")].iter().find_map(|path| Some(values.get(path)?.layer));
    let describes =
        |path: &[String]| path[0] == "start" && path.len() == 2 && BESIDE.contains(&path[1].as_str());
    values.retain(|path, given| Some(given.layer) != said || !(given.of_agent || describes(path)));
}

/// The values of a named agent as those of `[start]`; empty if no agent has that name.
fn expand(name: &str, agents: &Values) -> Values {
    let own = agents.iter().filter(|(path, _)| path[0] == "agents" && path[1] == name);
    own.map(|(path, given)| {
        let path = match path[2].as_str() {
            "kind" => start("agent"),
            "args" => start("agent-arg"),
            _ => [&["start".to_owned()], &path[2..]].concat(),
        };
        (path, Setting { of_agent: true, ..given.clone() })
    })
    .collect()
}

fn config(values: &Values) -> Result<Config, ConfigError> {
    let mut root = toml::Table::new();
    for (path, given) in values {
        insert(&mut root, path, &given.value);
    }
    root.try_into().map_err(|error: toml::de::Error| {
        // Each layer was read by itself, so all values fit; this names the lowest if they do not together.
        let at = values.values().next().map_or(Origin::Default, |given| given.origin.clone());
        ConfigError::Wrong { at, what: error.message().to_owned() }
    })
}

fn insert(table: &mut toml::Table, path: &[String], value: &toml::Value) {
    match path {
        [] => {}
        [name] => drop(table.insert(name.clone(), value.clone())),
        [name, below @ ..] => {
            let inner = table.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            // A value where a table should be was refused when its file was read.
            if let toml::Value::Table(inner) = inner {
                insert(inner, below, value);
            }
        }
    }
}

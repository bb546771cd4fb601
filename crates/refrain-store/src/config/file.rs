//! One configuration file: read with care, as a project's file comes from the authors of the project; every key known,
//! every value readable, each with its line.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::protect::ProtectedPaths;
use refrain_core::spec::AgentKind;
use rustix::fs::OFlags;
use toml::de::{DeTable, DeValue};

use super::keys::{Config, Embeddings};
use super::nearest;
use super::schema::{KeySchema, Table};
use super::setting::{ConfigError, Origin, Setting, Values};
use crate::project::layout::Project;

/// The largest configuration file, in bytes.
const LARGEST: u64 = 1 << 20;

pub(super) struct Layer {
    pub(super) given: Values,
    pub(super) config: Config,
}

/// A configuration file that could be read, with any content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: Utf8PathBuf,
    pub text: String,
}

/// The project's file: `refrain.toml` at the root of the worktree. None if there is none.
/// Errors: [`ConfigError`] if it is no regular file (a link could show something else each time it is looked at), is
/// too large or no UTF-8.
pub fn project_file(project: &Project) -> Result<Option<ConfigFile>, ConfigError> {
    let path = project.worktree.join("refrain.toml");
    read(&path, OFlags::NOFOLLOW, |_| true)
}

/// The path of the user's own file, which may be missing.
pub(super) fn user_place(config_home: &Utf8Path) -> Utf8PathBuf {
    config_home.join("config.toml")
}

/// The user's own file, which may be a link to where they keep such files. It must be theirs: if there is no home, its
/// place is one that all users can write to.
/// Errors: [`ConfigError`] if it belongs to another user, or is no file, too large or no UTF-8.
pub fn user_file(config_home: &Utf8Path) -> Result<Option<ConfigFile>, ConfigError> {
    let own = rustix::process::geteuid().as_raw();
    read(&user_place(config_home), OFlags::empty(), |meta| [own, 0].contains(&meta.uid()))
}

fn read(
    path: &Utf8Path,
    flags: OFlags,
    is_fine: impl FnOnce(&Metadata) -> bool,
) -> Result<Option<ConfigFile>, ConfigError> {
    let refuse = |why: String| Err(ConfigError::Unusable { path: path.to_owned(), why });
    // Without waiting: a FIFO would never open.
    let flags = (flags | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => {
            return refuse("it is a symbolic link; accepted: the file itself".to_owned());
        }
        Err(error) => return refuse(error.to_string()),
    };
    let meta = match file.metadata() {
        Ok(meta) if !meta.is_file() => return refuse("it is no regular file".to_owned()),
        Ok(meta) => meta,
        Err(error) => return refuse(error.to_string()),
    };
    if !is_fine(&meta) {
        return refuse("it belongs to another user".to_owned());
    }
    let mut bytes = Vec::new();
    if let Err(error) = file.take(LARGEST + 1).read_to_end(&mut bytes) {
        return refuse(error.to_string());
    }
    if bytes.len() as u64 > LARGEST {
        return refuse(format!("it is larger than {LARGEST} bytes"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(ConfigFile { path: path.to_owned(), text })),
        Err(error) => {
            let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter();
            let line = line.filter(|byte| **byte == b'\n').count() + 1;
            refuse(format!("line {line} is no UTF-8 text"))
        }
    }
}

impl ConfigFile {
    /// Its content, if all of it is known and can be used.
    pub fn parse(&self) -> Result<Config, ConfigError> {
        Ok(self.layer()?.config)
    }

    pub(super) fn layer(&self) -> Result<Layer, ConfigError> {
        let line = |at: usize| self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let origin = |at: usize| Origin::File { path: self.path.clone(), line: line(at) };
        let wrong = |at: usize, what: String| ConfigError::Wrong { at: origin(at), what };
        let place = |error: &toml::de::Error| error.span().map_or(0, |span| span.start.min(self.text.len()));
        let broken = |error: &toml::de::Error| {
            wrong(place(error), format!("this is no TOML: {}", error.message().replace('\n', " ")))
        };

        let spans = DeTable::parse(&self.text).map_err(|error| broken(&error))?;
        let values: toml::Table = toml::from_str(&self.text).map_err(|error| broken(&error))?;
        let mut found = Vec::new();
        flatten(spans.get_ref(), &values, &mut Vec::new(), &mut found);
        let known = KeySchema::new();
        for KeyValue { path, key_at, .. } in &found {
            if let Some(what) = unknown(known.root(), path) {
                return Err(wrong(*key_at, what));
            }
        }
        let config: Config = toml::from_str(&self.text).map_err(|error| {
            let objections =
                found.iter().filter_map(|one| Some((one, known.objection(&one.path, &one.value)?)));
            if let Some((one, what)) = objections.min_by_key(|(one, _)| one.key_at) {
                return wrong(one.key_at, format!("{}: {what}", key(&one.path)));
            }
            let at = place(&error);
            let around = found.iter().filter(|one| (one.key_at..one.end).contains(&at));
            let key = around.max_by_key(|one| one.key_at).map(|one| format!("{}: ", key(&one.path)));
            wrong(at, format!("{}{}", key.unwrap_or_default(), error.message()))
        })?;
        if let Some((path, what)) = objection(&config) {
            let at = found.iter().find(|one| one.path.iter().eq(path.iter())).map_or(0, |one| one.key_at);
            return Err(wrong(at, format!("{}: {what}", key(&path))));
        }
        let folder = self.path.parent().unwrap_or(Utf8Path::new(""));
        let given = found.into_iter().filter(|one| !one.is_table).map(|one| {
            let value = match (one.path.as_slice(), one.value) {
                ([table, _, last], toml::Value::String(file))
                    if matches!(
                        (table.as_str(), last.as_str()),
                        ("prompts" | "modes", "file") | ("gates", "spec")
                    ) =>
                {
                    toml::Value::String(folder.join(file).into_string())
                }
                (_, value) => value,
            };
            (one.path, Setting::new(value, origin(one.key_at)))
        });
        Ok(Layer { given: given.collect(), config })
    }
}

struct KeyValue {
    path: Vec<String>,
    value: toml::Value,
    is_table: bool,
    /// Where its name begins, in bytes.
    key_at: usize,
    end: usize,
}

fn flatten(spans: &DeTable<'_>, values: &toml::Table, above: &mut Vec<String>, found: &mut Vec<KeyValue>) {
    for (name, place) in spans {
        let Some(value) = values.get(name.get_ref().as_ref()) else { continue };
        above.push(name.get_ref().clone().into_owned());
        found.push(KeyValue {
            path: above.clone(),
            value: value.clone(),
            is_table: value.is_table(),
            key_at: name.span().start,
            end: place.span().end,
        });
        if let (DeValue::Table(spans), toml::Value::Table(values)) = (place.get_ref(), value) {
            flatten(spans, values, above, found);
        }
        above.pop();
    }
}

/// The error for an unknown key; none for a known one, or one in place of a table.
pub(super) fn unknown(root: Table<'_>, path: &[String]) -> Option<String> {
    let (name, above) = path.split_last()?;
    let mut table = root;
    for step in above {
        table = table.below(step)?;
    }
    if table.has(name) {
        return None;
    }
    let place =
        if above.is_empty() { "a configuration file".to_owned() } else { format!("[{}]", key(above)) };
    let elsewhere =
        root.names().into_iter().find(|other| root.below(other).is_some_and(|it| it.has_own(name)));
    let advice = match (nearest(name, table.names()), elsewhere) {
        (Some(meant), _) => format!("did you mean {meant}?"),
        (None, Some(table)) => format!("it belongs into [{table}]"),
        (None, None) => format!("accepted: {}", table.names().join(", ")),
    };
    Some(format!("{name} is no key of {place}; {advice}"))
}

pub(super) fn key(path: &[String]) -> String {
    let is_bare = |name: &str| {
        !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
    };
    let quoted = |name: &String| if is_bare(name) { name.clone() } else { format!("{name:?}") };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// The checks that types cannot express: the first contradiction, and its place.
fn objection(config: &Config) -> Option<(Vec<String>, String)> {
    let at = |path: &[&str], what: &str| {
        Some((path.iter().map(|name| (*name).to_owned()).collect(), what.to_owned()))
    };
    let gates: Vec<String> = config.gates.named().map(|(name, _)| name.to_owned()).collect();
    let tables = [
        ("agents", config.agents.keys().collect::<Vec<_>>()),
        ("prompts", config.prompts.keys().collect()),
        ("modes", config.modes.keys().collect()),
        ("gates", gates.iter().collect()),
    ];
    for (table, names) in tables {
        if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
            return at(&[table, name], "accepted: names of a-z, 0-9 and -, with a letter first");
        }
    }
    for (name, agent) in &config.agents {
        if AgentKind::named(name).is_some() {
            return at(&["agents", name], "this is the name of an adapter; take another");
        }
        if agent.command.is_none() && agent.kind.and_then(AgentKind::program).is_none() {
            return at(
                &["agents", name],
                "it needs a command, or a kind that has a program of its own; refrain config edit removes the agent",
            );
        }
        if agent.env.keys().any(|name| !is_variable(name)) {
            return at(&["agents", name, "env"], VARIABLES);
        }
    }
    if config.start.env.keys().any(|name| !is_variable(name)) {
        return at(&["start", "env"], VARIABLES);
    }
    for (table, texts) in [("prompts", &config.prompts), ("modes", &config.modes)] {
        if let Some((name, _)) = texts.iter().find(|(_, it)| it.text.is_some() == it.file.is_some()) {
            return at(&[table, name], "accepted: either text or file");
        }
    }
    if config.notify.webhook.as_ref().is_some_and(|url| !is_web(url)) {
        return at(&["notify", "webhook"], "accepted: a URL of http or https");
    }
    if config.notify.ntfy.as_ref().is_some_and(|url| !is_web(url)) {
        return at(&["notify", "ntfy"], "accepted: the URL of a topic, as https://ntfy.sh/TOPIC");
    }
    if config.notify.ntfy_replies.as_ref().is_some_and(|url| !is_web(url)) {
        return at(&["notify", "ntfy-replies"], "accepted: the URL of a topic, as https://ntfy.sh/TOPIC");
    }
    if config.notify.ntfy_replies.is_some() && config.notify.ntfy_replies == config.notify.ntfy {
        return at(&["notify", "ntfy-replies"], "accepted: another topic than that of notify.ntfy");
    }
    if config.notify.ntfy.is_some() && config.notify.webhook.is_some() {
        return at(&["notify", "ntfy"], "accepted: either ntfy or webhook");
    }
    let slack = &config.slack;
    if slack.api_url.as_ref().is_some_and(|url| !is_web(url)) {
        return at(&["slack", "api-url"], "accepted: a URL of http or https");
    }
    if slack.notify == Some(true) && slack.channels.is_empty() {
        return at(&["slack", "notify"], "it needs channels: the first gets them");
    }
    for (key, names, first) in [
        ("channels", &slack.channels, "CDG"),
        ("may-start", &slack.may_start, "UW"),
        ("may-stop", &slack.may_stop, "UW"),
    ] {
        if names.iter().any(|name| !is_of_slack(name, first)) {
            return at(&["slack", key], "accepted: ids as Slack has them, like C0123ABCD or U0123ABCD");
        }
    }
    let (fleet, worker) = (&config.fleet, &config.worker);
    let is_short = |word: &String| word.is_empty() || word.len() > 64 || !word.bytes().all(is_word);
    let words = [
        (["fleet", "namespace"], fleet.namespace.as_slice()),
        (["fleet", "pool"], fleet.pool.as_slice()),
        (["fleet", "team"], fleet.team.as_slice()),
        (["worker", "name"], worker.name.as_slice()),
        (["worker", "pools"], worker.pools.as_slice()),
    ];
    if let Some((key, _)) = words.iter().find(|(_, words)| words.iter().any(is_short)) {
        return at(key, "accepted: up to 64 of a-z, A-Z, 0-9, ., _ and -");
    }
    if worker.slots.is_some_and(|slots| !(1..=1000).contains(&slots)) {
        return at(&["worker", "slots"], "accepted: 1 to 1000");
    }
    if config.memory.budget.is_some_and(|tokens| !(200..=50_000).contains(&tokens)) {
        return at(
            &["memory", "budget"],
            "accepted: 200 to 50000 tokens; memory.recall = \"off\" tells none",
        );
    }
    if let Some(Embeddings { url, model }) = &config.memory.embeddings {
        if !is_web(url) || !["/embeddings", "/api/embed"].iter().any(|end| url.ends_with(end)) {
            let accepted =
                "accepted: a URL of http or https that ends in /embeddings, or in /api/embed as Ollama's";
            return at(&["memory", "embeddings", "url"], accepted);
        }
        if model.trim().is_empty() {
            return at(&["memory", "embeddings", "model"], "it is empty; accepted: the name of a model");
        }
    }
    if config.telemetry.endpoint.as_ref().is_some_and(|url| !is_web(url)) {
        return at(&["telemetry", "endpoint"], "accepted: a URL of http or https");
    }
    for (name, globs) in [("frozen", &config.protect.frozen), ("existing", &config.protect.existing)] {
        if let Err(error) = ProtectedPaths::new(globs, &[]) {
            return at(&["protect", name], &error.to_string());
        }
    }
    for (name, gate) in config.gates.named() {
        if gate.command.is_some() == gate.spec.is_some() {
            return at(&["gates", name], "accepted: either command or spec");
        }
        if gate.command.as_ref().is_some_and(|command| command.trim().is_empty()) {
            return at(&["gates", name, "command"], "it is empty; accepted: a shell command");
        }
        let reviews = [("reviewer", &gate.reviewer), ("model", &gate.model)];
        if let Some((key, _)) = reviews.iter().find(|(_, value)| gate.spec.is_none() && value.is_some()) {
            return at(&["gates", name, key], "a command has none; accepted with spec");
        }
    }
    None
}

const VARIABLES: &str = "accepted: names of variables, but those that begin with REFRAIN_";

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !name.starts_with("REFRAIN_")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

fn is_web(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty()) && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// Whether it is an id of Slack's that begins so; a name would never match a user.
fn is_of_slack(id: &str, first: &str) -> bool {
    id.starts_with(|c| first.contains(c))
        && id.len() > 1
        && id.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
}

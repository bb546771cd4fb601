//! One key of the user's file: its value as it holds, and a change of it that keeps all else byte for byte.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::values::OnStuck;
use toml::de::{DeTable, DeValue};

use super::file::{ConfigFile, key, unknown, user_file, user_place};
use super::keys::Config;
use super::layers::{Settings, unknown_agent};
use super::schema::KeySchema;
use super::setting::ConfigError;
use super::show::Entry;
use crate::disk::atomic::{create, make_dir, replace_atomic};
use crate::{DiskError, OnPath};

/// Why a key cannot be read, set or removed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{0}")]
    Unknown(String),
    #[error("{0}")]
    Value(String),
    /// The file holds the key in a form that is not changed here.
    #[error(
        "{0}: this key cannot be changed without rewriting the file; accepted: an editor: refrain config edit"
    )]
    Form(Utf8PathBuf),
    #[error("{0} was changed meanwhile; nothing was written, try again")]
    Changed(Utf8PathBuf),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A key that holds one value: `start.max-iterations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let no_key = || KeyError::Unknown(format!("{text:?} is no key; accepted: one like start.agent"));
        if text.contains(char::is_control) {
            return Err(no_key());
        }
        let mut table: toml::Table = toml::from_str(&format!("{text} = 0")).map_err(|_| no_key())?;
        let mut path = Vec::new();
        loop {
            let mut entries = table.into_iter();
            let (Some((name, value)), None) = (entries.next(), entries.next()) else { return Err(no_key()) };
            path.push(name);
            match value {
                toml::Value::Table(below) => table = below,
                toml::Value::Integer(0) => break,
                _ => return Err(no_key()),
            }
        }
        let known = KeySchema::new();
        let mut table = known.root();
        for (at, name) in path.iter().enumerate() {
            if let Some(what) = unknown(known.root(), &path[..=at]) {
                return Err(KeyError::Unknown(what));
            }
            match table.below(name) {
                Some(below) if at + 1 < path.len() => table = below,
                Some(below) => {
                    let names = below.names().join(", ");
                    let keys = match (names.is_empty(), below.takes_own_names()) {
                        (true, _) => "names of your own".to_owned(),
                        (false, true) => format!("{names}, and names of your own"),
                        (false, false) => names,
                    };
                    return Err(KeyError::Unknown(format!(
                        "{} is a table; accepted: one of its keys: {keys}; refrain config edit changes or removes it whole",
                        key(&path)
                    )));
                }
                None if at + 1 < path.len() => {
                    let above = key(&path[..=at]);
                    return Err(KeyError::Unknown(format!("{above} has no keys; accepted: {above}")));
                }
                None => {}
            }
        }
        Ok(Self(path))
    }
}

impl Settings {
    /// The key with its value; none if nothing sets it and it has no single default.
    pub fn entry(&self, path: &KeyPath) -> Option<Entry> {
        let name = key(&path.0);
        self.entries().into_iter().find(|entry| entry.key == name).filter(|entry| entry.value.is_some())
    }
}

/// The path of the user's file, which may be missing.
pub fn user_path(config_home: &Utf8Path) -> Utf8PathBuf {
    user_place(config_home)
}

/// The path of the user's file, whose folder is made if it is missing.
pub fn prepare(config_home: &Utf8Path) -> Result<Utf8PathBuf, KeyError> {
    make_dir(config_home)?;
    Ok(user_place(config_home))
}

/// Sets a key of the user's file, which is made if it is missing. Returns its path.
/// Errors: [`KeyError`]; the file is then as it was.
pub fn set(config_home: &Utf8Path, path: &KeyPath, text: &str) -> Result<Utf8PathBuf, KeyError> {
    let place = user_place(config_home);
    let file = user_file(config_home)?;
    let old = file.as_ref().map_or("", |file| file.text.as_str());
    // A value that is refused may be the one that is set.
    let fault = file.as_ref().and_then(|file| file.parse().err());
    let new = match (changed(&place, old, &path.0, text), fault) {
        (Err(KeyError::Value(_) | KeyError::Form(_)), Some(fault)) => return Err(fault.into()),
        (new, _) => new?,
    };
    if file.is_none() {
        make_dir(config_home)?;
        return match create(&place, new.as_bytes())? {
            true => Ok(place),
            false => Err(KeyError::Changed(place)),
        };
    }
    replace(config_home, place, old, &new)
}

/// Removes a key of the user's file. Returns its path; none if the file does not have the key.
/// Errors: [`KeyError`]; the file is then as it was.
pub fn unset(config_home: &Utf8Path, path: &KeyPath) -> Result<Option<Utf8PathBuf>, KeyError> {
    let Some(file) = user_file(config_home)? else { return Ok(None) };
    let Some(span) = value_span(&file.text, &path.0) else {
        file.parse()?;
        return Ok(None);
    };
    let new = without(&file.text, &path.0, span).ok_or_else(|| KeyError::Form(file.path.clone()))?;
    (ConfigFile { text: new.clone(), ..file.clone() }).parse()?;
    replace(config_home, user_place(config_home), &file.text, &new).map(Some)
}

/// Replaces the text of the user's file, which is still the old one.
fn replace(
    config_home: &Utf8Path,
    place: Utf8PathBuf,
    old: &str,
    new: &str,
) -> Result<Utf8PathBuf, KeyError> {
    // The user may keep the file elsewhere, and link to it.
    let target = place.canonicalize_utf8().on("look at", &place)?;
    let is_current = || matches!(user_file(config_home), Ok(Some(now)) if now.text == old);
    match replace_atomic(&target, new.as_bytes(), is_current)? {
        true => Ok(place),
        false => Err(KeyError::Changed(place)),
    }
}

/// The text of a file with a key set: the value as TOML if the key takes it so, else as a text.
fn changed(place: &Utf8Path, old: &str, path: &[String], text: &str) -> Result<String, KeyError> {
    let as_toml = toml::from_str::<toml::Table>(&format!("v = {text}")).ok();
    let as_toml = as_toml.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"));
    let as_text = toml::Value::String(text.to_owned());
    let mut refusal = None;
    for value in as_toml.into_iter().chain([as_text]) {
        let Some(new) = with(old, path, &value) else { return Err(KeyError::Form(place.to_owned())) };
        match (ConfigFile { path: place.to_owned(), text: new.clone() }).parse() {
            Ok(config) => {
                let refused = refused_agent(&config, path);
                return refused
                    .map_or(Ok(new), |what| Err(KeyError::Value(format!("{}: {what}", key(path)))));
            }
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let why = match refusal {
        // The line is one of a file that was not written.
        Some(ConfigError::Wrong { what, .. }) if what.contains("expected a sequence") => {
            let list = toml::Value::Array(vec![toml::Value::String(text.to_owned())]);
            format!("{}: {text} is no list; accepted: one like '{list}'", key(path))
        }
        Some(ConfigError::Wrong { what, .. }) => what,
        Some(error @ ConfigError::Unusable { .. }) => error.to_string(),
        None => format!("{} takes no such value", key(path)),
    };
    Err(KeyError::Value(why))
}

/// Why the key cannot name the agent that it names.
fn refused_agent(config: &Config, path: &[String]) -> Option<String> {
    let name = match (key(path).as_str(), &config.start.on_stuck) {
        ("start.agent", _) => config.start.agent.as_deref()?,
        ("start.on-stuck", Some(OnStuck::Agent(name))) => name,
        _ => return None,
    };
    let why = unknown_agent(name, config)?;
    Some(format!("{why}; refrain config set agents.NAME.command CMD adds one"))
}

/// The text with the value at the path, and nothing else changed; none if no simple edit does that.
fn with(old: &str, path: &[String], value: &toml::Value) -> Option<String> {
    let mut wanted: toml::Table = toml::from_str(old).ok()?;
    put(&mut wanted, path, value)?;
    let written = value.to_string();
    let (name, table) = path.split_last()?;
    let line = format!("{} = {written}\n", key(std::slice::from_ref(name)));
    let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let gap = if old.is_empty() { "" } else { "\n" };
    let edits = [
        value_span(old, path).map(|span| format!("{}{written}{}", &old[..span.start], &old[span.end..])),
        after_header(old, table).map(|at| {
            let end = if old[..at].ends_with('\n') { "" } else { "\n" };
            format!("{}{end}{line}{}", &old[..at], &old[at..])
        }),
        Some(format!("{old}{end}{gap}[{}]\n{line}", key(table))),
        Some(format!("{} = {written}\n{old}", key(path))),
    ];
    let is_it = |text: &String| toml::from_str::<toml::Table>(text).is_ok_and(|found| found == wanted);
    edits.into_iter().flatten().find(is_it)
}

/// The text without the lines of the value at the path; none if they hold more.
fn without(old: &str, path: &[String], value: std::ops::Range<usize>) -> Option<String> {
    let mut wanted: toml::Table = toml::from_str(old).ok()?;
    take(&mut wanted, path);
    let begin = old[..value.start].rfind('\n').map_or(0, |at| at + 1);
    let end = old[value.end..].find('\n').map_or(old.len(), |at| value.end + at + 1);
    let new = format!("{}{}", &old[..begin], &old[end..]);
    let mut found: toml::Table = toml::from_str(&new).ok()?;
    // The header of its table may stay, without a key below it.
    take(&mut found, path);
    (found == wanted).then_some(new)
}

/// Takes the key away, and each table that is empty then.
fn take(table: &mut toml::Table, path: &[String]) {
    let Some((name, rest)) = path.split_first() else { return };
    if let Some(toml::Value::Table(below)) = table.get_mut(name)
        && !rest.is_empty()
    {
        take(below, rest);
        if !below.is_empty() {
            return;
        }
    }
    table.remove(name);
}

fn put(table: &mut toml::Table, path: &[String], value: &toml::Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        table.insert(name.clone(), value.clone());
        return Some(());
    }
    let below = table.entry(name.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    put(below.as_table_mut()?, rest, value)
}

fn value_span(text: &str, path: &[String]) -> Option<std::ops::Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let (last, above) = path.split_last()?;
    for name in above {
        let DeValue::Table(below) = table.get(name.as_str())?.get_ref() else { return None };
        table = below;
    }
    Some(table.get(last.as_str())?.span())
}

/// The place after the line that begins the table.
fn after_header(text: &str, table: &[String]) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.trim_start().starts_with('[') && is_header(line, table) {
            return Some(at);
        }
    }
    None
}

fn is_header(line: &str, path: &[String]) -> bool {
    let Ok(mut table) = toml::from_str::<toml::Table>(line) else { return false };
    for name in path {
        match table.remove(name) {
            Some(toml::Value::Table(below)) => table = below,
            _ => return false,
        }
    }
    table.is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn edit(old: &str, name: &str, value: &str) -> Result<String, String> {
        let path = KeyPath::parse(name).map_err(|error| error.to_string())?;
        changed(Utf8Path::new("config.toml"), old, &path.0, value).map_err(|error| error.to_string())
    }

    #[rstest]
    #[case::of_nothing("", "start.agent", "claude", "[start]\nagent = \"claude\"\n")]
    #[case::a_number("", "start.max-iterations", "5", "[start]\nmax-iterations = 5\n")]
    #[case::a_duration("", "start.max-duration", "8h", "[start]\nmax-duration = \"8h\"\n")]
    #[case::a_switch("[git] # mine\n", "git.worktree", "true", "[git] # mine\nworktree = true\n")]
    #[case::a_text_like_a_number("", "start.model", "4", "[start]\nmodel = \"4\"\n")]
    #[case::a_list("", "protect.frozen", "[\"a\", \"b\"]", "[protect]\nfrozen = [\"a\", \"b\"]\n")]
    #[case::a_name_of_ones_own("", "agents.work.command", "./a.sh", "[agents.work]\ncommand = \"./a.sh\"\n")]
    #[case::an_agent_of_ones_own(
        "[agents.mine]\ncommand = \"a\"\n",
        "start.agent",
        "mine",
        "[agents.mine]\ncommand = \"a\"\n\n[start]\nagent = \"mine\"\n"
    )]
    #[case::in_place(
        "# Mine.\n[start]\nagent = 'codex' # for now\nmodel = \"x\"\n",
        "start.agent",
        "claude",
        "# Mine.\n[start]\nagent = \"claude\" # for now\nmodel = \"x\"\n"
    )]
    #[case::beside_others(
        "[start]\n# agent = \"codex\"\nmodel = \"x\"\n[git]\nworktree = true",
        "git.workflow",
        "commit",
        "[start]\n# agent = \"codex\"\nmodel = \"x\"\n[git]\nworkflow = \"commit\"\nworktree = true"
    )]
    #[case::after_others(
        "[git]\nworktree = true",
        "start.agent",
        "acp",
        "[git]\nworktree = true\n\n[start]\nagent = \"acp\"\n"
    )]
    #[case::with_dotted_keys(
        "start.agent = \"codex\"\n",
        "start.model",
        "x",
        "start.model = \"x\"\nstart.agent = \"codex\"\n"
    )]
    #[case::for_a_value_that_is_refused(
        "[start]\nmax-iterations = \"x\"\n",
        "start.max-iterations",
        "3",
        "[start]\nmax-iterations = 3\n"
    )]
    #[case::in_an_inline_table(
        "start = { agent = \"codex\" }\n",
        "start.agent",
        "claude",
        "start = { agent = \"claude\" }\n"
    )]
    #[case::beside_a_text_that_looks_like_a_header(
        "[prompts.a]\ntext = '''\n[start]\n'''\n",
        "start.agent",
        "claude",
        "[prompts.a]\ntext = '''\n[start]\n'''\n\n[start]\nagent = \"claude\"\n"
    )]
    fn a_key_is_set_and_all_else_stays(
        #[case] old: &str,
        #[case] name: &str,
        #[case] value: &str,
        #[case] new: &str,
    ) {
        assert_eq!(edit(old, name, value).as_deref(), Ok(new));
    }

    #[rstest]
    #[case("strat.agent", "x", "did you mean start?")]
    #[case("start.agnet", "x", "did you mean agent?")]
    #[case("max-iterations", "5", "it belongs into [start]")]
    #[case("start", "5", "start is a table; accepted: one of its keys: agent, ")]
    #[case("gates", "5", "gates is a table; accepted: one of its keys: env, and names of your own")]
    #[case("start.agent.x", "5", "start.agent has no keys")]
    #[case("", "5", "is no key")]
    #[case("start.agent\n[x]", "5", "is no key")]
    #[case("start.max-iterations", "500", "start.max-iterations: ")]
    #[case("git.worktree", "maybe", "git.worktree: ")]
    #[case("notify.webhook", "ftp://x", "accepted: a URL of http or https")]
    fn a_value_that_cannot_be_set_is_refused_by_name(
        #[case] name: &str,
        #[case] value: &str,
        #[case] says: &str,
    ) {
        let refused = edit("", name, value).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }

    #[test]
    fn a_key_is_set_in_a_file_only_if_all_of_it_is_accepted_then() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        let place = home.join("config.toml");
        let set = |name: &str, value: &str| {
            set(home, &KeyPath::parse(name).unwrap(), value).map_err(|error| error.to_string())
        };
        crate::write_atomic(&place, b"[start]\nmax-iterations = \"x\"\n").unwrap();
        let refused = set("start.agent", "claude").unwrap_err();
        assert!(refused.contains("config.toml:2: start.max-iterations: \"x\""), "{refused}");
        assert_eq!(set("start.max-iterations", "3"), Ok(place.clone()));
        assert_eq!(set("start.agent", "claude"), Ok(place));
    }

    #[rstest]
    #[case::the_only_one("[start]\nagent = \"x\" # mine\n", Some("[start]\n"))]
    #[case::beside_others(
        "# Mine.\n[start]\nmodel = \"y\"\nagent = 'x'\n\n[git]\n",
        Some("# Mine.\n[start]\nmodel = \"y\"\n\n[git]\n")
    )]
    #[case::with_dotted_keys("start.agent = \"x\"\nstart.model = \"y\"", Some("start.model = \"y\""))]
    #[case::in_an_inline_table("start = { agent = \"x\" }\n[git]\n", Some("[git]\n"))]
    #[case::of_several_lines(
        "[start]\nagent = \"\"\"\nx\"\"\"\nmodel = \"y\"\n",
        Some("[start]\nmodel = \"y\"\n")
    )]
    #[case::beside_another_in_its_line("start = { agent = \"x\", model = \"y\" }\n", None)]
    fn a_key_is_removed_and_all_else_stays(#[case] old: &str, #[case] new: Option<&str>) {
        let path = ["start".to_owned(), "agent".to_owned()];
        let span = value_span(old, &path).unwrap();
        assert_eq!(without(old, &path, span).as_deref(), new);
    }

    #[test]
    fn a_form_that_no_edit_fits_is_left_to_an_editor() {
        let refused = edit("start = { agent = \"codex\" }\n", "start.model", "x").unwrap_err();
        assert!(refused.contains("refrain config edit"), "{refused}");
    }
}

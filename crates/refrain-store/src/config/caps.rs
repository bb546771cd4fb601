//! `[budget]`: the one part of the configuration that is read again while loops run, because a lowered cap is meant for
//! running loops too. That is the user's own file; a project's caps are pinned when a loop is started, because an agent
//! could change the file.

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::budget::{CapKind, Caps};
use serde::Deserialize;

use super::file;
use super::keys::Budget;
use super::setting::{ConfigError, Values};

/// The caps of the user's own file.
#[derive(Clone, Debug)]
pub struct UserCaps {
    config_home: Utf8PathBuf,
    last: Option<Caps>,
}

impl UserCaps {
    /// Those of this config home; nothing is read yet.
    pub fn new(config_home: &Utf8Path) -> Self {
        Self { config_home: config_home.to_owned(), last: None }
    }

    /// The caps of the file now. While it cannot be read, the earlier ones hold.
    pub fn read(&mut self) -> Result<Caps, ConfigError> {
        let caps = self.parse().or_else(|error| self.last.ok_or(error))?;
        self.last = Some(caps);
        Ok(caps)
    }

    fn parse(&self) -> Result<Caps, ConfigError> {
        let Some(file) = file::user_file(&self.config_home)? else { return Ok(Caps::default()) };
        match toml::from_str::<OnlyBudget>(&file.text) {
            Ok(config) => Ok(Caps::from(&config.budget)),
            // The same, with the line and what is accepted.
            Err(_) => file.parse().map(|config| Caps::from(&config.budget)),
        }
    }
}

/// The caps of a file hold even if the rest of it is wrong: a loop continues, and what it may cost stays known.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyBudget {
    budget: Budget,
}

/// Takes the caps out of a project's values that would not lower what the user's file says.
pub(super) fn only_lowers(project: &mut Values, user: &Caps, own: &Caps) {
    let lower = own.lower(*user);
    let lowers = |which| own.of(which) == lower.of(which) && own.of(which) != user.of(which);
    let idle: Vec<_> = CapKind::ALL.into_iter().filter(|which| !lowers(*which)).map(CapKind::key).collect();
    project
        .retain(|path, _| path[0] != "budget" || path.get(1).is_none_or(|key| !idle.contains(&key.as_str())));
}

#[cfg(test)]
mod tests {
    use refrain_core::agent::Usd;

    use super::*;
    use crate::write_atomic;

    #[test]
    fn a_cap_that_is_changed_holds_from_the_next_look_on_and_a_broken_file_changes_none() {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let mut caps = UserCaps::new(home);
        let says = |text: &str| write_atomic(&home.join("config.toml"), text.as_bytes()).unwrap();
        assert_eq!(caps.read(), Ok(Caps::default()), "there is no file");
        let day = |dollars: u64| Caps { day: Some(Usd(dollars * 1_000_000_000)), ..Caps::default() };
        for (text, expected) in [
            ("[budget]\nmax-cost-per-day = 20\n", day(20)),
            ("[budget]\nmax-cost-per-day = 5.0\n", day(5)),
            ("[budget]\nmax-cost-per-day = \n", day(5)),
            ("[begin]\nmax-cost = 0\n[budget]\nmax-cost-per-day = 7\n", day(7)),
            ("[budget]\nmax-cost-per-day = \"none\"\n", Caps::default()),
        ] {
            says(text);
            assert_eq!(caps.read(), Ok(expected), "{text}");
        }
        says("[budget]\nmax-cost-per-day = -1\n");
        assert!(UserCaps::new(home).read().unwrap_err().to_string().contains("config.toml:2"));
    }
}

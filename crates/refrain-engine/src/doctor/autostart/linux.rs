//! Linux: a service of the user's own systemd that resumes what the machine's end interrupted. It is nothing but two
//! files: the unit, and the link by which it is started.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::{environment, generic};
use refrain_core::view::checkup::{Finding, Subject};
use refrain_files::IfThere;
use refrain_proc::probe;
use refrain_proc::program::in_path_outside;
use refrain_store::{DiskError, make_dir, write_atomic};

use super::{Autostart, AutostartChange};
use crate::doctor::cure::Diagnosis;
use crate::doctor::reboot;
use crate::{EngineError, Host};

const UNIT: &str = "refrain-resume.service";
/// By its first line a unit is known to be ours.
const OURS: &str = "# Written by refrain doctor --autostart on; refrain doctor --autostart off removes it.";
/// Before it, the path of the program that the unit starts. systemd passes over keys that begin so.
const PROGRAM: &str = "X-Refrain-Program=";
/// Variables that say where things are, and hold no secrets: without them agents and logins are not found after a
/// reboot.
const PLACES: [&str; 8] = [
    "PATH",
    "LANG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
];
/// How long systemd may take to look at its units anew.
const PATIENCE: Duration = Duration::from_secs(10);

impl Host {
    fn value(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().rev().find(|(set, _)| set == name);
        found.and_then(|(_, value)| value.to_str()).filter(|value| !value.is_empty())
    }

    /// The user's units of systemd: the file, and the link that starts it.
    fn units(&self) -> Option<(Utf8PathBuf, Utf8PathBuf)> {
        let absolute = |path: &&str| path.starts_with('/');
        let config = match self.value("XDG_CONFIG_HOME").filter(absolute) {
            Some(config) => Utf8PathBuf::from(config),
            None => Utf8Path::new(self.value("HOME").filter(absolute)?).join(".config"),
        };
        let units = config.join("systemd/user");
        Some((units.join(UNIT), units.join("default.target.wants").join(UNIT)))
    }

    /// Switches on or off that loops are resumed after a reboot interrupts them.
    /// Errors: [`EngineError`] if a file cannot be written, or a unit of that name was not written by Refrain.
    pub fn switch_autostart(&self, on: bool) -> Result<AutostartChange, EngineError> {
        let failed = |what, kind: ErrorKind, why: &str| {
            EngineError::Process(what, io::Error::new(kind, why.to_owned()))
        };
        let (unit, link) = self.units().ok_or_else(|| {
            failed("there is no place for a service", ErrorKind::NotFound, "HOME is not set")
        })?;
        let present = fs::read_to_string(&unit).ok();
        if present.as_ref().is_some_and(|text| !text.starts_with(OURS)) {
            let why = format!("{unit} was not written by refrain; move it away first");
            return Err(failed("the service cannot be changed", ErrorKind::AlreadyExists, &why));
        }
        if !on {
            for path in [&link, &unit] {
                fs::remove_file(path).if_there().map_err(|error| disk("remove", path, error))?;
            }
            self.systemctl(&["daemon-reload"]);
            return Ok(match present {
                Some(_) => AutostartChange::Off(unit),
                None => AutostartChange::WasOff(unit),
            });
        }
        let program = self
            .own_path()
            .map_err(|error| EngineError::Process("the path of this program cannot be told", error))?;
        // Only what this run of the machine and later ones interrupt is to be resumed by it.
        reboot::remember_this_boot(self)?;
        for folder in [unit.parent(), link.parent()].into_iter().flatten() {
            make_dir(folder)?;
        }
        write_atomic(&unit, self.unit(&program).as_bytes())?;
        match std::os::unix::fs::symlink(&unit, &link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(disk("link", &link, error)),
            _ => {}
        }
        // Started now it resumes nothing, and notes when this run of the machine ends.
        let is_started = self.systemctl(&["daemon-reload"]) && self.systemctl(&["start", UNIT]);
        let lingers = self.lingers();
        let is_set = |name: &&'static str| self.value(name).is_some();
        let left_out = environment::SECRETS.into_iter().filter(is_set).collect();
        Ok(AutostartChange::On(Autostart { unit, link, is_started, lingers, left_out }))
    }

    /// Where this program lies: by the name that leads to it, if there is one, as what that leads to is replaced by
    /// another version one day.
    fn own_path(&self) -> io::Result<Utf8PathBuf> {
        let own = fs::canonicalize(&self.program)?;
        let named = generic::in_path("refrain", &self.env).filter(|path| path.is_absolute());
        let named = named.filter(|path| fs::canonicalize(path).is_ok_and(|found| found == own));
        let path = Utf8PathBuf::from_path_buf(named.unwrap_or(own)).ok();
        // It is written in a line of its own, too.
        path.filter(|path| !path.as_str().contains(char::is_control))
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidFilename, "it cannot stand in a unit"))
    }

    fn unit(&self, program: &Utf8Path) -> String {
        let places = PLACES.into_iter().filter_map(|name| Some((name, self.value(name)?)));
        let environment: String = places
            .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
            .collect();
        let end = reboot::end_mark(self);
        format!(
            "{OURS}\n[Unit]\nDescription=Refrain: continue the loops that a reboot interrupted\n\
             {PROGRAM}{program}\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n{environment}\
             # A loop that cannot continue must not end those that can.\n\
             ExecStart=-{} resume --all --after-reboot\n\
             # When this run of the machine ended: a loop that stops then continues at the next start, one that stopped before does not.\n\
             ExecStop=-/usr/bin/env touch -- {}\n\n[Install]\nWantedBy=default.target\n",
            in_command(program.as_str()),
            in_command(end.as_str()),
        )
    }

    fn systemctl(&self, args: &[&str]) -> bool {
        let ask = |program: PathBuf| {
            let args = [&["--user", "--no-ask-password"], args].concat();
            probe::ask(&program, &args, Path::new("/"), &self.env, PATIENCE).ok()
        };
        let answer = in_path_outside("systemctl", &self.env, &[]).and_then(ask);
        answer.is_some_and(|answer| answer.code == Some(0))
    }

    fn lingers(&self) -> bool {
        let user = self.value("USER").or_else(|| self.value("LOGNAME"));
        user.is_some_and(|user| {
            !user.contains('/') && Path::new("/var/lib/systemd/linger").join(user).exists()
        })
    }
}

fn disk(action: &'static str, path: &Utf8Path, source: io::Error) -> EngineError {
    DiskError { action, path: path.to_owned(), source }.into()
}

/// A text as systemd reads it back: in quotes, with nothing in it that it would fill in.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '%' => quoted.push_str("%%"),
            char if char.is_control() => {
                let mut bytes = [0; 4];
                let bytes = char.encode_utf8(&mut bytes).bytes();
                quoted.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// The same for a word of a command, in which variables are filled in, too.
fn in_command(text: &str) -> String {
    quoted(text).replace('$', "$$")
}

pub(in crate::doctor) fn look(host: &Host) -> Vec<Diagnosis> {
    let Some((unit, link)) = host.units() else { return vec![] };
    let text = fs::read_to_string(&unit).ok().filter(|text| text.starts_with(OURS));
    let Some(text) = text else {
        let told =
            "off: loops that a reboot interrupts wait for refrain resume (refrain doctor --autostart on)";
        return vec![Finding::ok(Subject::Autostart, told).into()];
    };
    let again = "refrain doctor --autostart on writes it anew";
    let program = text.lines().find_map(|line| line.strip_prefix(PROGRAM)).unwrap_or_default();
    let finding = if !Path::new(program).is_file() {
        Finding::problem(Subject::Autostart, format!("it would start {program}, which is gone"), again)
    } else if fs::symlink_metadata(&link).is_err() {
        Finding::warning(Subject::Autostart, format!("nothing starts the service: {link} is gone"), again)
    } else if !Path::new("/run/systemd/system").is_dir() {
        let told = "on, but this machine was not started by systemd: nothing will resume loops";
        Finding::warning(
            Subject::Autostart,
            told,
            "refrain resume --all --after-reboot, by what starts your programs",
        )
    } else if !host.lingers() {
        let told =
            "on: loops continue at your first login after a reboot (at boot with loginctl enable-linger)";
        Finding::ok(Subject::Autostart, told)
    } else {
        Finding::ok(Subject::Autostart, "on: loops continue at boot")
    };
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn host(dir: &Utf8Path, env: &[(&str, &str)]) -> Host {
        let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Host {
            program: std::env::current_exe().unwrap(),
            env: env.chain([("HOME".into(), dir.as_str().into())]).collect(),
            config_home: dir.join("config"),
            data_home: dir.join("data"),
            state_home: dir.join("state"),
            version: "1".into(),
        }
    }

    #[test]
    fn values_in_a_unit_are_quoted_for_systemd() {
        assert_eq!(quoted("PATH=/a b:100%\"\\"), r#""PATH=/a b:100%%\"\\""#);
        assert_eq!(in_command("/home/$x/ü"), "\"/home/$$x/ü\"");
        assert_eq!(quoted("a\nExecStart=x"), "\"a\\x0aExecStart=x\"");
    }

    #[test]
    fn autostart_is_switched_on_and_off_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let host = host(dir, &[("PATH", "/opt/a b/bin"), ("OPENAI_API_KEY", "secret")]);
        assert!(matches!(host.switch_autostart(false), Ok(AutostartChange::WasOff(_))));
        for _ in 0..2 {
            let AutostartChange::On(on) = host.switch_autostart(true).unwrap() else { panic!("it is on") };
            assert_eq!(on.left_out, ["OPENAI_API_KEY"]);
            assert_eq!(fs::read_link(&on.link).unwrap(), on.unit);
            let text = fs::read_to_string(&on.unit).unwrap();
            assert!(text.contains("Environment=\"PATH=/opt/a b/bin\"\n"), "{text}");
            assert!(text.contains(" resume --all --after-reboot\n") && !text.contains("secret"), "{text}");
            assert!(!on.is_started, "there is no systemctl in that PATH");
        }
        assert!(matches!(host.switch_autostart(false), Ok(AutostartChange::Off(_))));
        assert_eq!(fs::read_dir(dir.join(".config/systemd/user")).unwrap().count(), 1, "an empty folder");
    }

    #[test]
    fn a_foreign_unit_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let host = host(dir, &[]);
        let (unit, _) = host.units().unwrap();
        fs::create_dir_all(unit.parent().unwrap()).unwrap();
        write_atomic(&unit, b"[Unit]\n").unwrap();
        for on in [true, false] {
            assert!(host.switch_autostart(on).is_err());
        }
        assert_eq!(fs::read_to_string(&unit).unwrap(), "[Unit]\n");
    }
}

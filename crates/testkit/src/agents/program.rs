//! The programs and their installation: each version in a folder of its own, put there whole or not at all.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program that the tests can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// `OpenCode`.
    OpenCode,
    /// Gemini CLI.
    Gemini,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Gemini];

    /// The word it is called by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// The version that the tests are for. Named to npm in full: left to choose, it takes an old Claude Code where node is
    /// old, though that program needs no node.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.329",
            Self::Codex => "0.169.0",
            Self::OpenCode => "1.18.33",
            Self::Gemini => "0.61.0",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::OpenCode => "opencode-ai",
            Self::Gemini => "@google/gemini-cli",
        }
    }

    /// Where it is, if it is installed. Of Codex it is the native program: its wrapper keeps signals from it.
    #[must_use]
    pub fn program(self) -> Option<PathBuf> {
        self.program_in(&cache()?.join(self.folder()))
    }

    fn folder(self) -> String {
        format!("{}-{}", self.name(), self.version())
    }

    fn program_in(self, folder: &Path) -> Option<PathBuf> {
        let modules = folder.join("node_modules");
        let found = match self {
            Self::Codex => {
                let packages = fs::read_dir(modules.join("@openai")).ok()?.flatten();
                let vendors = packages.filter_map(|package| fs::read_dir(package.path().join("vendor")).ok());
                vendors
                    .flatten()
                    .flatten()
                    .map(|vendor| vendor.path().join("bin/codex"))
                    .find(|path| path.is_file())
            }
            Self::Claude | Self::OpenCode | Self::Gemini => Some(modules.join(".bin").join(self.name())),
        };
        found.filter(|path| path.is_file())
    }

    /// Installs it with npm, unless it is there, and sees that it is what it should be. Says what was done, or why it could
    /// not be.
    ///
    /// # Errors
    /// Where there is no npm, no network, no place, or the wrong program came.
    pub fn install(self) -> Result<String, String> {
        if let Some(program) = self.program() {
            return Ok(format!("{} {} is there: {}", self.name(), self.version(), program.display()));
        }
        let cache = cache().ok_or("there is no home to keep programs in: set REFRAIN_AGENTS_DIR")?;
        fs::create_dir_all(&cache).map_err(|error| format!("make {}: {error}", cache.display()))?;
        // On the same file system, so that it can be moved to its place when it is whole.
        let scratch =
            tempfile::tempdir_in(&cache).map_err(|error| format!("in {}: {error}", cache.display()))?;
        let package = format!("{}@{}", self.package(), self.version());
        let mut npm = command("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix"]);
        output(npm.arg(scratch.path()).arg(&package).current_dir(scratch.path()))?;
        let program = self.program_in(scratch.path()).ok_or_else(|| format!("{package} holds no program"))?;
        self.check_version(&program, scratch.path())?;
        let place = cache.join(self.folder());
        let whole = scratch.keep();
        // Somebody else may have been faster.
        if let Err(error) = fs::rename(&whole, &place)
            && !place.is_dir()
        {
            return Err(format!("move {} to {}: {error}", whole.display(), place.display()));
        }
        Ok(format!("{} {} was installed: {}", self.name(), self.version(), place.display()))
    }

    fn check_version(self, program: &Path, home: &Path) -> Result<(), String> {
        let mut asking = command(program);
        asking.arg("--version").env("HOME", home.join("home")).current_dir(home);
        let said = output(&mut asking)?;
        let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        if said.contains(self.version()) {
            return Ok(());
        }
        Err(format!("{} should be version {}, but says {said:?}", self.name(), self.version()))
    }
}

/// Where programs are kept.
fn cache() -> Option<PathBuf> {
    let own = variable("REFRAIN_AGENTS_DIR").map(PathBuf::from);
    let general = || variable("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
    own.or_else(|| Some(general().or_else(home)?.join("refrain-e2e/agents")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "where programs are kept is the affair of whoever runs the tests"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "npm is run with what whoever runs the tests has")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

fn output(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("start {name}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} ended with {}: {}", output.status, said.trim()))
}

//! The programs: the tested version of each, and its path in the npm package.

use std::fs;
use std::path::{Path, PathBuf};

use crate::npm;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    /// `OpenCode`.
    OpenCode,
    Gemini,
}

impl Agent {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::OpenCode, Self::Gemini];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// The version that the tests are for. Given to npm in full: otherwise npm picks an old Claude Code for an old
    /// node, though that program needs no node.
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

    /// Its path, if it is installed. For Codex the native program: its wrapper does not pass on signals.
    pub fn program(self) -> Option<PathBuf> {
        self.program_in(&npm::cache()?.join(self.folder()))
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

    /// Installs it with npm, unless it is there, and checks its version. Returns what was done.
    pub fn install(self) -> Result<String, String> {
        if let Some(program) = self.program() {
            return Ok(format!("{} {} is there: {}", self.name(), self.version(), program.display()));
        }
        let package = format!("{}@{}", self.package(), self.version());
        let place = npm::install(&self.folder(), &package, |folder| {
            let program = self.program_in(folder).ok_or_else(|| format!("{package} holds no program"))?;
            self.check_version(&program, folder)
        })?;
        Ok(format!("{} {} was installed: {}", self.name(), self.version(), place.display()))
    }

    fn check_version(self, program: &Path, home: &Path) -> Result<(), String> {
        let mut asking = npm::command(program);
        asking.arg("--version").env("HOME", home.join("home")).current_dir(home);
        let said = npm::output(&mut asking)?;
        let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        if said.contains(self.version()) {
            return Ok(());
        }
        Err(format!("{} should be version {}, but says {said:?}", self.name(), self.version()))
    }
}

//! Why there is no sandbox, and what can be done about it.

use std::fmt;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The part of a sandbox that could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Plan,
    /// The bounds of memory and CPU.
    Cgroup,
    UserNamespace,
    UserMap,
    Namespaces,
    Capabilities,
    Loopback,
    Mounts,
    Root,
    Proc,
    Devices,
    Program,
    /// What lay at protected places is put back after the program.
    Restore,
    /// The rules for files, without namespaces.
    Landlock,
    /// The process that makes it could not be started, or ended without a word.
    Helper,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Plan => "its plan",
            Self::Cgroup => "the cgroup",
            Self::UserNamespace => "the user namespace",
            Self::UserMap => "the map of users",
            Self::Namespaces => "the namespaces for processes and network",
            Self::Capabilities => "the capabilities",
            Self::Loopback => "the loopback interface",
            Self::Mounts => "the mounts",
            Self::Root => "the new root",
            Self::Proc => "/proc",
            Self::Devices => "/dev",
            Self::Program => "the start of the program",
            Self::Restore => "what its program changed at protected places",
            Self::Landlock => "the rules for files",
            Self::Helper => "its process",
        }
    }
}

/// A sandbox that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub step: Step,
    /// The number of the system's error, if it was one.
    pub errno: Option<i32>,
    pub error: String,
    /// What it is about, if that is a place of the user's.
    #[serde(default)]
    pub path: Option<Utf8PathBuf>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.step == Step::Restore { "put back" } else { "made" };
        write!(f, "{} cannot be {what}: {}", self.step.name(), self.error)
    }
}

/// The step that an error belongs to.
pub(crate) trait At<T> {
    fn at(self, step: Step) -> Result<T, Refusal>;
    fn at_path(self, step: Step, path: &Utf8Path) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, Refusal> {
        self.map_err(|error| {
            let error = error.into();
            Refusal { step, errno: error.raw_os_error(), error: error.to_string(), path: None }
        })
    }

    fn at_path(self, step: Step, path: &Utf8Path) -> Result<T, Refusal> {
        self.at(step).map_err(|refusal| {
            let error = format!("{path}: {}", refusal.error);
            Refusal { error, path: Some(path.to_owned()), ..refusal }
        })
    }
}

/// What is known about the machine, to name the cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    pub is_linux: bool,
    pub is_root: bool,
    /// `user.max_user_namespaces`.
    pub most_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone`, which Debian had.
    pub may_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub apparmor: Option<u64>,
    /// AppArmor is on, and may have a profile for Refrain.
    pub has_apparmor: bool,
    /// This process runs under a seccomp filter.
    pub is_filtered: bool,
    /// The version of the kernel.
    pub kernel: (u32, u32),
}

/// Why a machine refuses a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    NotLinux,
    OldKernel,
    NoUserNamespaces,
    NoUnprivilegedNamespaces,
    AppArmor,
    SeccompFilter,
    RootWithoutCapabilities,
    MaskedProc,
    NoLandlock,
    NoCgroup,
    /// Something at a path that is protected, or around it.
    Path,
    Unknown,
}

impl Cause {
    pub const ALL: [Self; 12] = [
        Self::NotLinux,
        Self::OldKernel,
        Self::NoUserNamespaces,
        Self::NoUnprivilegedNamespaces,
        Self::AppArmor,
        Self::SeccompFilter,
        Self::RootWithoutCapabilities,
        Self::MaskedProc,
        Self::NoLandlock,
        Self::NoCgroup,
        Self::Path,
        Self::Unknown,
    ];

    #[must_use]
    pub fn of(refusal: &Refusal, machine: &Machine) -> Self {
        let is = |errno: i32| refusal.errno == Some(errno);
        let is_denied = is(1) || is(13);
        match refusal.step {
            _ if !machine.is_linux => Self::NotLinux,
            Step::Landlock => Self::NoLandlock,
            Step::Cgroup => Self::NoCgroup,
            _ if machine.kernel < (5, 12) => Self::OldKernel,
            Step::UserNamespace if machine.most_namespaces == Some(0) => Self::NoUserNamespaces,
            Step::UserNamespace if machine.may_clone == Some(0) && !machine.is_root => {
                Self::NoUnprivilegedNamespaces
            }
            // AppArmor lets the namespace be made, and takes the capabilities in it.
            Step::UserNamespace | Step::UserMap | Step::Namespaces | Step::Capabilities | Step::Mounts
                if is_denied && machine.apparmor == Some(1) && !machine.is_root =>
            {
                Self::AppArmor
            }
            // The kernel itself and seccomp filters have other errors.
            Step::UserNamespace if is(13) && machine.has_apparmor => Self::AppArmor,
            Step::UserNamespace if is_denied && machine.is_filtered => Self::SeccompFilter,
            Step::UserMap if is_denied && machine.is_root => Self::RootWithoutCapabilities,
            Step::Proc if is_denied => Self::MaskedProc,
            Step::Mounts | Step::Root | Step::Devices | Step::Namespaces
                if is_denied && machine.is_filtered =>
            {
                Self::SeccompFilter
            }
            Step::Plan | Step::Program if refusal.path.is_some() => Self::Path,
            _ => Self::Unknown,
        }
    }

    /// Why, for a person.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::NotLinux => "the sandbox needs Linux",
            Self::OldKernel => "the sandbox needs Linux 5.12 or later",
            Self::NoUserNamespaces => "this machine allows no user namespaces (user.max_user_namespaces = 0)",
            Self::NoUnprivilegedNamespaces => {
                "this machine allows user namespaces only for root (kernel.unprivileged_userns_clone = 0)"
            }
            Self::AppArmor => "AppArmor refuses user namespaces to refrain",
            Self::SeccompFilter => "a seccomp filter refuses namespaces, as in a Docker container",
            Self::RootWithoutCapabilities => "root lacks the capability CAP_SETFCAP, as in a container",
            Self::MaskedProc => "parts of /proc are masked, as in a container, so it cannot be mounted again",
            Self::NoLandlock => "the kernel has no Landlock, or an old one (before Linux 6.2)",
            Self::NoCgroup => "memory and CPU cannot be bounded here",
            Self::Path => "a place of the sandbox cannot be used as it is",
            Self::Unknown => "the system refuses it",
        }
    }

    /// What to do about a refusal, for a person.
    #[must_use]
    pub fn remedy(self, refusal: &Refusal) -> String {
        let (Self::Path, Some(path)) = (self, &refusal.path) else { return self.usual_remedy().to_owned() };
        let folder = path.parent().filter(|_| refusal.step == Step::Plan).unwrap_or(path);
        let in_the_way = [Errno::NOTDIR, Errno::LOOP, Errno::NAMETOOLONG, Errno::EXIST, Errno::ISDIR];
        match refusal.errno.map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS) => format!("chmod u+rwx {}", quoted(folder)),
            Some(errno) if in_the_way.contains(&errno) => {
                format!("mv {0} {0}.aside", quoted(folder))
            }
            _ => format!("ls -la {} shows what is there", quoted(folder)),
        }
    }

    fn usual_remedy(self) -> &'static str {
        match self {
            Self::NotLinux => "run Refrain on Linux or in a Linux virtual machine",
            Self::OldKernel => "upgrade the kernel",
            Self::NoUserNamespaces => "sudo sysctl user.max_user_namespaces=10000",
            Self::NoUnprivilegedNamespaces => "sudo sysctl kernel.unprivileged_userns_clone=1",
            Self::AppArmor => {
                "give refrain an AppArmor profile with `userns,`, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
            }
            Self::SeccompFilter => {
                "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
            }
            Self::RootWithoutCapabilities => "run Refrain as another user, or docker run --cap-add SETFCAP",
            Self::MaskedProc => "docker run --security-opt systempaths=unconfined",
            Self::NoLandlock => "use Linux 6.2 or later, with landlock in its parameter lsm",
            Self::NoCgroup => "systemd-run --user --scope refrain, or take memory and cpus out of [sandbox]",
            Self::Path | Self::Unknown => "refrain doctor",
        }
    }
}

/// A word of a shell: an agent may have chosen the name.
fn quoted(path: &Utf8Path) -> String {
    format!("'{}'", path.as_str().replace('\'', "'\\''"))
}

/// The version of the kernel.
pub(crate) fn kernel() -> (u32, u32) {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_in_the_way_is_named_with_the_command_that_mends_it() {
        let machine = Machine { is_linux: true, kernel: (6, 12), ..Machine::default() };
        for (step, errno, expected) in [
            (Step::Plan, Errno::ACCESS, "chmod u+rwx '/p/.git'"),
            (Step::Plan, Errno::NOTDIR, "mv '/p/.git' '/p/.git'.aside"),
            (Step::Program, Errno::ACCESS, "chmod u+rwx '/p/.git/remotes'"),
        ] {
            let refusal = Err::<(), _>(errno).at_path(step, "/p/.git/remotes".into()).unwrap_err();
            assert_eq!(Cause::of(&refusal, &machine).remedy(&refusal), expected);
            assert!(refusal.to_string().contains("/p/.git/remotes: "), "{refusal}");
        }
    }

    #[test]
    fn apparmor_refuses_by_a_setting_or_by_a_profile() {
        let on = Machine { is_linux: true, kernel: (6, 12), has_apparmor: true, ..Machine::default() };
        let restricted = Machine { apparmor: Some(1), ..on.clone() };
        for (machine, step, errno, expected) in [
            (&on, Step::UserNamespace, 13, Cause::AppArmor),
            (&restricted, Step::UserMap, 1, Cause::AppArmor),
            (&restricted, Step::Mounts, 13, Cause::AppArmor),
            (&on, Step::UserNamespace, 1, Cause::Unknown),
            (&Machine { has_apparmor: false, ..on.clone() }, Step::UserNamespace, 13, Cause::Unknown),
        ] {
            let refusal = Refusal { step, errno: Some(errno), error: String::new(), path: None };
            assert_eq!(Cause::of(&refusal, machine), expected, "{step:?} {errno}");
        }
    }
}

//! The attacker, in the sandbox.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use camino::Utf8Path;

/// The rights that new files of a folder get.
pub(crate) const RIGHTS: &str = "system.posix_acl_default";
const SHARED_MEMORY: &str = "/dev/shm/refrain-attack";
pub(crate) const GOT_THROUGH: i32 = 40;
pub(crate) const WAS_REFUSED: i32 = 41;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Open,
    Refused,
    /// There was no sandbox, or the attempt itself failed.
    Broken,
}

use Outcome::{Open, Refused};

/// Each attempt, and how it has to end: in namespaces, and without them; none if that depends on the machine's network.
pub(crate) const ATTEMPTS: &[(&str, Outcome, Option<Outcome>)] = &[
    ("write-worktree", Open, Some(Open)),
    ("write-tmp", Open, Some(Open)),
    ("write-machine-tmp", Refused, Some(Refused)),
    ("open-terminal", Open, Some(Open)),
    ("serve-loopback", Open, Some(Open)),
    ("trace-child", Open, Some(Open)),
    ("git-commit", Open, Some(Open)),
    ("git-branch-and-stash", Open, Some(Open)),
    ("git-delete-branch", Open, Some(Refused)),
    ("write-bashrc", Refused, Some(Refused)),
    ("write-etc", Refused, Some(Refused)),
    ("write-sibling", Refused, Some(Refused)),
    ("change-mode-bashrc", Refused, Some(Open)),
    ("change-mode-ssh", Refused, Some(Open)),
    ("change-times-bashrc", Refused, Some(Open)),
    ("change-times-ssh", Refused, Some(Open)),
    ("write-cron", Refused, Some(Refused)),
    ("read-ssh", Refused, Some(Refused)),
    ("read-netrc", Refused, Some(Refused)),
    ("link-ssh", Refused, Some(Refused)),
    ("read-other-agent", Refused, Some(Refused)),
    ("read-shadow", Refused, Some(Refused)),
    ("git-hooks", Refused, Some(Refused)),
    ("git-config", Refused, Some(Refused)),
    ("git-info", Refused, Some(Refused)),
    ("git-linked-file", Refused, Some(Refused)),
    ("git-read-refrain", Refused, Some(Refused)),
    ("git-write-refrain", Refused, Some(Refused)),
    ("git-rename", Refused, Some(Refused)),
    ("git-remove-protected", Refused, Some(Refused)),
    ("git-replace-hooks", Refused, Some(Refused)),
    ("git-worktree-link", Refused, Some(Open)),
    ("git-commondir", Refused, Some(Refused)),
    ("git-alternates", Refused, Some(Open)),
    ("git-remotes", Refused, Some(Refused)),
    ("git-submodule-config", Refused, Some(Refused)),
    ("git-replace-submodule", Refused, Some(Refused)),
    ("git-submodule-without-head", Refused, Some(Refused)),
    ("git-submodule-of-worktree", Refused, Some(Open)),
    ("git-submodule-nested", Refused, Some(Refused)),
    ("git-submodule-commondir", Refused, Some(Refused)),
    ("git-worktree-added", Refused, Some(Refused)),
    ("host-loopback", Refused, Some(Open)),
    ("metadata-address", Refused, None),
    ("udp-out", Refused, None),
    ("ipv6-out", Refused, None),
    ("resolve-a-name", Refused, None),
    ("raw-socket", Refused, Some(Refused)),
    ("vsock", Refused, Some(Refused)),
    ("abstract-socket", Refused, Some(Refused)),
    ("socket-by-path", Refused, Some(Open)),
    ("see-processes", Refused, Some(Open)),
    ("signal-process-1", Refused, Some(Refused)),
    ("trace-other", Refused, Some(Refused)),
    ("memory-of-process-1", Refused, Some(Refused)),
    ("files-of-process-1", Refused, Some(Refused)),
    ("take-a-descriptor", Refused, Some(Refused)),
    ("root-of-process-1", Refused, Some(Refused)),
    ("open-by-handle", Refused, Some(Refused)),
    ("variables-of-others", Refused, Some(Refused)),
    ("join-a-namespace", Refused, Some(Refused)),
    ("io-uring", Refused, Some(Refused)),
    ("userfaultfd", Refused, Some(Refused)),
    ("mount", Refused, Some(Refused)),
    ("user-namespace", Refused, Some(Refused)),
    ("clone3-namespace", Refused, Some(Refused)),
    ("unmount-mask", Refused, Some(Refused)),
    ("type-into-terminal", Refused, Some(Refused)),
    ("lease-of-bashrc", Refused, Some(Refused)),
    ("socket-in-git", Refused, Some(Refused)),
    ("open-disk", Refused, Some(Refused)),
    ("core-pattern", Refused, Some(Refused)),
    ("dump-core", Refused, Some(Refused)),
    ("sysrq", Refused, Some(Refused)),
    ("kernel-keys", Refused, Some(Refused)),
    ("chroot", Refused, Some(Refused)),
    ("set-user", Refused, Some(Refused)),
    ("remount", Refused, Some(Refused)),
    ("leave-set-uid", Refused, Some(Refused)),
    ("leave-set-gid", Refused, Some(Refused)),
    ("inherited-files", Refused, Some(Refused)),
    ("write-standard-input", Refused, Some(Refused)),
    ("write-git-through-proc", Refused, Some(Refused)),
    ("rename-around-hidden", Refused, Some(Open)),
    ("mode-of-device", Refused, None),
    ("limit-of-other", Refused, Some(Refused)),
    ("priority-of-other", Refused, Some(Refused)),
    ("fork-bomb", Refused, Some(Open)),
    ("cgroup", Refused, Some(Refused)),
];

pub(crate) fn run(name: &str, home: &Utf8Path, port: u16) -> ExitCode {
    let code = match attempt(name, home, port) {
        Ok(()) => GOT_THROUGH,
        Err(error) => {
            eprintln!("{name}: {error}");
            WAS_REFUSED
        }
    };
    ExitCode::from(u8::try_from(code).unwrap())
}

fn write(path: impl AsRef<std::path::Path>) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(b"attack\n")
}

/// A file that has something in it.
fn read(path: impl AsRef<std::path::Path>) -> io::Result<()> {
    let mut text = String::new();
    File::open(path)?.read_to_string(&mut text)?;
    if text.is_empty() { Err(io::Error::other("it is empty")) } else { Ok(()) }
}

fn shell(script: &str) -> io::Result<()> {
    let status = Command::new("/bin/sh").args(["-ec", script]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

#[expect(unsafe_code, reason = "system calls that no library would make")]
fn call(number: i64, arguments: [usize; 5]) -> io::Result<i64> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: pointers in the arguments are to static texts or null.
    let result = unsafe { libc::syscall(number, a, b, c, d, e) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn text(text: &'static std::ffi::CStr) -> usize {
    text.as_ptr() as usize
}

fn socket(family: i32, kind: i32) -> io::Result<i64> {
    call(libc::SYS_socket, [family.unsigned_abs() as usize, kind.unsigned_abs() as usize, 0, 0, 0])
}

fn connect(address: &str) -> io::Result<()> {
    TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(2)).map(drop)
}

fn git_dir() -> String {
    let output =
        Command::new("git").args(["rev-parse", "--path-format=absolute", "--git-common-dir"]).output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
}

#[expect(clippy::too_many_lines, reason = "one row for each attempt")]
fn attempt(name: &str, home: &Utf8Path, port: u16) -> io::Result<()> {
    let git = || Utf8Path::new(&git_dir()).to_owned();
    let user_namespace = libc::CLONE_NEWUSER.unsigned_abs() as usize;
    match name {
        "write-worktree" => write("new"),
        "write-tmp" => {
            let folder = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
            write(format!("{folder}/new"))?;
            write(SHARED_MEMORY)?;
            fs::remove_file(SHARED_MEMORY)
        }
        // Beside a socket that is outside: a folder of the sandbox's own has none.
        "write-machine-tmp" => {
            fs::metadata(format!("/tmp/refrain-test-{port}.sock"))?;
            write(format!("/tmp/refrain-attack-{port}"))
        }
        "open-terminal" => OpenOptions::new().read(true).write(true).open("/dev/ptmx").map(drop),
        "serve-loopback" => {
            let server = TcpListener::bind("127.0.0.1:0")?;
            connect(&server.local_addr()?.to_string())
        }
        "trace-child" => call(libc::SYS_ptrace, [0; 5]).map(drop),
        "git-commit" => shell(
            "echo x >> file; git add -A; git commit -qm second; git commit -q --amend -m again; git log -1",
        ),
        "git-branch-and-stash" => shell(
            "git branch -f other; echo y >> file; git stash -q; git stash apply -q; git checkout -q -- file; git repack -adq",
        ),
        "git-delete-branch" => {
            shell("git branch -f gone; git branch -D gone; echo y >> file; git stash -q; git stash pop -q")
        }
        "change-mode-bashrc" => shell("chmod 0640 \"$HOME/.bashrc\""),
        "change-mode-ssh" => shell("chmod 0640 \"$HOME/.ssh/id\""),
        "change-times-bashrc" => shell("touch -c -d 2020-01-01 \"$HOME/.bashrc\""),
        "change-times-ssh" => shell("test -e \"$HOME/.ssh/id\" && touch -c -d 2020-01-01 \"$HOME/.ssh/id\""),
        "write-bashrc" => write(home.join(".bashrc")),
        "write-etc" => write("/etc/refrain-attack"),
        "write-cron" => {
            write("/var/spool/cron/crontabs/root").or_else(|_| write("/etc/cron.d/refrain-attack"))
        }
        "write-sibling" => write(home.join("sibling/file")),
        "read-ssh" => read(home.join(".ssh/id")),
        "read-netrc" => read(home.join(".netrc")),
        "link-ssh" => fs::hard_link(home.join(".ssh/id"), "linked").and_then(|()| read("linked")),
        "read-other-agent" => read(home.join(".codex/auth.json")),
        "read-shadow" => read("/etc/shadow").or_else(|_| read("/etc/shadow-")),
        "git-hooks" => write(git().join("hooks/pre-commit")),
        "git-config" => write(git().join("config")).or_else(|_| shell("git config core.fsmonitor ./attack")),
        "git-linked-file" => write(git().join("config.worktree"))
            .or_else(|_| fs::remove_file(git().join("config.worktree")))
            .or_else(|_| fs::rename("file", git().join("config.worktree")))
            .or_else(|_| write(git().with_file_name("my-excludes"))),
        "git-info" => write(git().join("info/attributes")),
        "git-read-refrain" => read(git().join("refrain/secret")),
        "git-write-refrain" => write(git().join("refrain/new")),
        "git-rename" => fs::rename(git(), git().with_file_name("gone"))
            .or_else(|_| fs::rename(git().join("hooks"), git().join("other"))),
        "git-remove-protected" => {
            let (config, hooks) = (git().join("config"), git().join("hooks"));
            fs::remove_file(config).or_else(|_| fs::remove_dir_all(&hooks))
        }
        "git-replace-hooks" => {
            let new = git().join("new-hooks");
            fs::create_dir(&new)?;
            fs::rename(new, git().join("hooks"))
        }
        "git-worktree-link" => {
            let of = git().join("worktrees/linked");
            write(of.join("gitdir")).or_else(|_| write(of.join("commondir"))).or_else(|_| {
                // In the linked worktree, the file that leads to its git folder.
                if fs::metadata(".git")?.is_file() {
                    write(".git")
                } else {
                    Err(io::ErrorKind::IsADirectory.into())
                }
            })
        }
        // The user's own git would believe it while the sandbox is there.
        "git-commondir" => write(git().join("commondir"))
            .or_else(|_| fs::remove_file(git().join("commondir")))
            .or_else(|_| fs::rename("file", git().join("commondir"))),
        // Without namespaces it can be created, and is put aside when the sandbox ends.
        "git-alternates" => write(git().join("objects/info/alternates")),
        // Git reads remotes there that its configuration does not have.
        "git-remotes" => {
            fs::create_dir_all(git().join("remotes")).and_then(|()| write(git().join("remotes/origin")))
        }
        "git-submodule-config" => write(git().join("modules/lib/config"))
            .or_else(|_| write(git().join("modules/lib/hooks/post-checkout"))),
        "git-replace-submodule" => fs::rename(git().join("modules"), git().join("gone"))
            .or_else(|_| fs::rename(git().join("modules/lib"), git().join("modules/gone"))),
        // A git folder that an agent broke, to make it one again.
        "git-submodule-without-head" => write(git().join("modules/no-head/config"))
            .or_else(|_| fs::rename(git().join("modules/no-head"), git().join("modules/gone"))),
        "git-submodule-of-worktree" => write(git().join("worktrees/linked/modules/no-head/config")),
        // `git submodule update` would take it as it is.
        "git-submodule-nested" => fs::create_dir_all(git().join("modules/lib/modules/deep"))
            .and_then(|()| write(git().join("modules/lib/modules/deep/config"))),
        "git-submodule-commondir" => write(git().join("modules/lib/commondir")),
        // One that the user adds while the agent runs would be in there.
        "git-worktree-added" => fs::create_dir_all(git().join("worktrees/new")),
        "host-loopback" => connect(&format!("127.0.0.1:{port}")),
        "metadata-address" => connect("169.254.169.254:80"),
        "udp-out" => UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", "192.0.2.1:53").map(drop),
        "ipv6-out" => UdpSocket::bind("[::]:0")?.send_to(b"x", "[2001:db8::1]:53").map(drop),
        "resolve-a-name" => ("example.org", 443).to_socket_addrs().map(drop),
        "raw-socket" => socket(libc::AF_INET, libc::SOCK_RAW)
            .or_else(|_| socket(libc::AF_PACKET, libc::SOCK_RAW))
            .map(drop),
        "vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM)
            .or_else(|_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET))
            .map(drop),
        "abstract-socket" => {
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(format!("refrain-test-{port}"))?)
                .map(drop)
        }
        "socket-by-path" => UnixStream::connect(format!("/tmp/refrain-test-{port}.sock")).map(drop),
        "see-processes" => {
            let processes = fs::read_dir("/proc")?.flatten();
            let count =
                processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()).count();
            if count > 2 { Ok(()) } else { Err(io::Error::other(format!("{count} processes"))) }
        }
        "signal-process-1" => {
            call(libc::SYS_kill, [1, 9, 0, 0, 0])?;
            fs::read_to_string("/proc/1/environ").and_then(|text| {
                if text.is_empty() {
                    Err(io::Error::other("it lives, and has no environment"))
                } else {
                    Ok(())
                }
            })
        }
        "trace-other" => call(libc::SYS_ptrace, [libc::PTRACE_ATTACH as usize, 1, 0, 0, 0])
            .or_else(|_| call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as usize, 1, 0, 0, 0]))
            .map(drop),
        "memory-of-process-1" => OpenOptions::new().read(true).write(true).open("/proc/1/mem").map(drop),
        "files-of-process-1" => fs::read_link("/proc/1/fd/0").map(drop),
        "take-a-descriptor" => {
            let of = call(libc::SYS_pidfd_open, [1, 0, 0, 0, 0])?;
            call(libc::SYS_pidfd_getfd, [usize::try_from(of).unwrap(), 0, 0, 0, 0]).map(drop)
        }
        "root-of-process-1" => {
            fs::read_dir("/proc/1/root").or_else(|_| fs::read_dir("/proc/1/cwd")).map(drop)
        }
        // The folder of a mount is enough for that, wherever the file is.
        "open-by-handle" => match call(libc::SYS_open_by_handle_at, [3, 0, 0, 0, 0]) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
            _ => Ok(()),
        },
        "variables-of-others" => {
            let own = std::process::id().to_string();
            let others = fs::read_dir("/proc")?.flatten().filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name != own && name.parse::<u32>().is_ok()
            });
            let mut read = others.filter_map(|entry| read(entry.path().join("environ")).ok());
            read.next().ok_or_else(|| io::Error::other("of none"))
        }
        "join-a-namespace" => {
            let namespace = File::open("/proc/self/ns/mnt")?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&namespace).unsigned_abs() as usize;
            call(libc::SYS_setns, [fd, 0, 0, 0, 0]).map(drop)
        }
        "userfaultfd" => call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0]).map(drop),
        "io-uring" => call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]).map(drop),
        "mount" => call(libc::SYS_mount, [text(c"none"), text(c"/tmp"), text(c"tmpfs"), 0, 0]).map(drop),
        "remount" => {
            // MS_REMOUNT | MS_BIND
            call(libc::SYS_mount, [0, text(c"/"), 0, 32 | 4096, 0]).map(drop)
        }
        "user-namespace" => call(libc::SYS_unshare, [user_namespace, 0, 0, 0, 0]).map(drop),
        "clone3-namespace" => match call(libc::SYS_clone3, [0; 5]) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err(error),
            _ => Ok(()),
        },
        "unmount-mask" => call(libc::SYS_umount2, [text(c"/run"), 2, 0, 0, 0]).map(drop),
        "type-into-terminal" => {
            let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx")?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&terminal).unsigned_abs() as usize;
            call(libc::SYS_ioctl, [fd, libc::TIOCSTI as usize, text(c"x"), 0, 0]).map(drop)
        }
        // A program outside that opens the file would wait for the lease.
        "lease-of-bashrc" => {
            let file = File::open(home.join(".bashrc"))?;
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file).unsigned_abs() as usize;
            let (command, lease) = (libc::F_SETLEASE as usize, libc::F_WRLCK.unsigned_abs() as usize);
            call(libc::SYS_fcntl, [fd, command, lease, 0, 0]).map(drop)
        }
        // Another sandbox could be handed a folder there.
        "socket-in-git" => UnixListener::bind(git().join("objects/socket")).map(drop),
        // What lies in it would be seen by the next process.
        "rename-around-hidden" => fs::rename("conf", "moved"),
        "mode-of-device" => fs::set_permissions("/dev/null", fs::Permissions::from_mode(0o666)),
        "limit-of-other" => {
            let parent = std::os::unix::process::parent_id() as usize;
            let limit = [1024_u64, 1024];
            let (kind, at) = (libc::RLIMIT_NOFILE as usize, limit.as_ptr() as usize);
            call(libc::SYS_prlimit64, [parent, kind, at, 0, 0]).map(drop)
        }
        "priority-of-other" => {
            let parent = std::os::unix::process::parent_id() as usize;
            call(libc::SYS_setpriority, [libc::PRIO_PROCESS as usize, parent, 0, 0, 0]).map(drop)
        }
        "open-disk" => {
            let make =
                call(libc::SYS_mknodat, [libc::AT_FDCWD as usize, text(c"disk"), 0o060_600, 0xfe00, 0]);
            make.and_then(|_| File::open("disk").map(drop)).or_else(|_| File::open("/dev/vda").map(drop))
        }
        // The machine's handler of crashes would get it.
        "dump-core" => shell("ulimit -c unlimited || ulimit -c 2"),
        "core-pattern" => fs::write("/proc/sys/kernel/core_pattern", "|/bin/false"),
        "sysrq" => OpenOptions::new().write(true).open("/proc/sysrq-trigger").map(drop),
        "kernel-keys" => call(libc::SYS_keyctl, [0; 5]).map(drop),
        "chroot" => call(libc::SYS_chroot, [text(c"/tmp"), 0, 0, 0, 0]).map(drop),
        "set-user" => call(libc::SYS_setuid, [1, 0, 0, 0, 0]).map(drop),
        "leave-set-uid" => leave_with(0o4755),
        "leave-set-gid" => leave_with(0o2755),
        "inherited-files" => {
            let open: Vec<_> = fs::read_dir("/proc/self/fd")?
                .filter_map(|entry| {
                    Some((entry.as_ref().ok()?.file_name(), fs::read_link(entry.ok()?.path()).ok()?))
                })
                .filter(|(fd, target)| {
                    let fd: i32 = fd.to_str().and_then(|fd| fd.parse().ok()).unwrap_or_default();
                    fd > 2 && !target.starts_with("/proc")
                })
                .collect();
            if open.is_empty() { Err(io::Error::other("there are none")) } else { Ok(()) }
        }
        "write-standard-input" => write("/proc/self/fd/0"),
        "write-git-through-proc" => fs::read_dir("/proc")?
            .flatten()
            .map(|entry| entry.path().join("root").join(git().strip_prefix("/").unwrap()).join("config"))
            .find_map(|path| write(path).ok())
            .ok_or_else(|| io::Error::other("through none")),
        "fork-bomb" => {
            let mut children = Vec::new();
            let result = (0..600).try_for_each(|_| {
                children.push(Command::new("/bin/sleep").arg("60").spawn()?);
                Ok(())
            });
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
            result
        }
        "cgroup" => fs::create_dir("/sys/fs/cgroup/refrain-attack")
            .or_else(|_| fs::create_dir("/sys/fs/cgroup/unified/refrain-attack"))
            .or_else(|_| fs::create_dir("/sys/fs/cgroup/pids/refrain-attack")),
        "plant-first" => {
            write(home.join(".claude/.config.json"))?;
            write("first")?;
            wait_for("the other agent", || fs::metadata("second").is_ok())
        }
        "plant-second" => {
            let planted = home.join(".claude/.config.json");
            write("second")?;
            wait_for("the end of the first one", || fs::metadata(&planted).is_err())?;
            write(&planted)
        }
        // What is made in the folder can be opened by no one, its owner included.
        "leave-rights" => {
            let row = |tag: u16| [&tag.to_le_bytes()[..], &[0, 0], &u32::MAX.to_le_bytes()].concat();
            let rights = [2_u32.to_le_bytes().to_vec(), row(1), row(4), row(0x20)].concat();
            match rustix::fs::setxattr(git().as_str(), RIGHTS, &rights, rustix::fs::XattrFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ACCESS) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        login if login.ends_with(".json") => {
            let path = home.join(login);
            let new = path.with_extension("new");
            for name in [
                "statusline.sh",
                "large.sh",
                "shell-snapshots/x",
                "chrome/chrome-native-host",
                "ide/1.lock",
                "tmp/x",
                "work.config.toml",
                "snapshot/x",
                "node_modules/x/index.js",
                "history/x",
                "scripts/deep/notify.sh",
                ".config.json",
                "automations/x",
                ".tmp/plugins/x",
                "antigravity/mcp_config.json",
                "file-history/p/mine.sh",
                "sessions/2026/x.jsonl",
                "storage/part/x.json",
                "tmp/p/chats/x.json",
            ] {
                let _ = write(path.with_file_name(name));
            }
            let linked = path.with_file_name("linked.sh");
            let _ = fs::remove_file(&linked).and_then(|()| write(linked));
            for name in ["projects", "sessions/2026", "log", "tmp/p"] {
                let folder = path.with_file_name(name);
                let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode));
                let _ = fs::create_dir_all(&folder).and_then(|()| mode(0o700));
                let _ = std::os::unix::fs::symlink(home.join(".bashrc"), folder.join("planted"));
                // Where it is not found by a look into the folder, and not removed either.
                let _ = mode(0o111);
            }
            // Settings that the user has not: another session would read them at once.
            let settings = match login {
                ".codex/auth.json" => "config.toml",
                ".local/share/opencode/auth.json" => "opencode.json",
                _ => "settings.json",
            };
            let is_planted = write(path.with_file_name(settings)).is_ok();
            let text = if is_planted { "new, with settings" } else { "new" };
            fs::write(&new, text).and_then(|()| fs::rename(new, path))
        }
        _ => panic!("there is no attempt {name}"),
    }
}

/// Waits until something is so; not for ever.
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) -> io::Result<()> {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        if Instant::now() > until {
            return Err(io::Error::other(format!("{what} is not seen")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Leaves a file that runs as its owner or group, by each system call that sets a mode.
fn leave_with(mode: u32) -> io::Result<()> {
    let _ = fs::remove_file("left");
    write("left")?;
    let change = |mode| fs::set_permissions("left", std::os::unix::fs::PermissionsExt::from_mode(mode));
    let create = || {
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), mode);
        options.open("left-too").map(drop)
    };
    let (here, number) = (libc::AT_FDCWD as usize, mode as usize);
    let make = || call(libc::SYS_mknodat, [here, text(c"left-node"), 0o100_000 | number, 0, 0]);
    let change_at = || call(452, [here, text(c"left"), number, 0, 0]);
    change(mode)
        .or_else(|_| create())
        .or_else(|_| make().map(drop))
        .or_else(|_| change_at().map(drop))
        .inspect_err(|_| change(0o755).expect("other modes work"))
}

//! Shared by the benchmarks of the library: a repository of many files, and measuring the time of an operation.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_proc::tool::Tool;

const FILES_OF_A_FOLDER: usize = 100;

/// Measured times of one way, in milliseconds.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) wall: Vec<f64>,
    pub(crate) cpu: Vec<f64>,
}

impl Figures {
    /// Average cost of one of `pieces` operations. CPU time has a resolution of 10 ms: a single short operation would
    /// measure as 0 or 10 ms.
    pub(crate) fn measure(
        &mut self,
        pieces: u32,
        mut work: impl FnMut(u32) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let (wall, cpu) = (Instant::now(), cpu_of_all()?);
        for piece in 0..pieces {
            work(piece)?;
        }
        self.wall.push(wall.elapsed().as_secs_f64() * 1e3 / f64::from(pieces));
        self.cpu.push((cpu_of_all()? - cpu) / f64::from(pieces));
        Ok(())
    }
}

/// The environment for git, with the folder as its home.
pub(crate) fn environment(home: &Utf8Path) -> Result<Vec<(OsString, OsString)>, Box<dyn Error>> {
    Ok(vec![
        ("PATH".into(), std::env::vars_os().find(|(name, _)| name == "PATH").ok_or("no PATH")?.1),
        ("HOME".into(), home.as_str().into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
    ])
}

/// Makes a repository of so many files in a folder, a hundred in each of its folders, with one commit on `main`.
pub(crate) fn repository(
    dir: &Utf8Path,
    files: usize,
    env: &[(OsString, OsString)],
) -> Result<Utf8PathBuf, Box<dyn Error>> {
    let root = dir.join("project");
    for folder in 0..files / FILES_OF_A_FOLDER {
        let folder = root.join(format!("area{}/part{folder}", folder % 10));
        fs::create_dir_all(&folder)?;
        for file in 0..FILES_OF_A_FOLDER {
            let text = format!("// {folder} {file}\n").repeat(20);
            fs::File::create(folder.join(format!("file{file}.rs")))?.write_all(text.as_bytes())?;
        }
    }
    run(&root, env, &["init", "-q", "-b", "main"])?;
    for (key, value) in [("user.name", "Bench"), ("user.email", "bench@localhost")] {
        run(&root, env, &["config", key, value])?;
    }
    run(&root, env, &["add", "."])?;
    // So many new objects would start background maintenance in the middle of the measurement.
    run(&root, env, &["-c", "gc.auto=0", "-c", "maintenance.auto=0", "commit", "-qm", "Begin"])?;
    run(&root, env, &["gc", "-q"])?;
    Ok(root)
}

pub(crate) fn run(
    root: &Utf8Path,
    env: &[(OsString, OsString)],
    args: &[&str],
) -> Result<(), Box<dyn Error>> {
    Tool::new("git", root.as_std_path()).env(env).args(args).output()?;
    Ok(())
}

/// The CPU time of this process and of every child that it waited for, in milliseconds.
fn cpu_of_all() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The program name is in parentheses and may contain anything. After it come the third field and all others.
    let (_, rest) = stat.rsplit_once(')').ok_or("proc(5)")?;
    let ticks = rest.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok());
    // Ticks for user space are hundredths of a second on every Linux.
    Ok(ticks.sum::<f64>() * 10.0)
}

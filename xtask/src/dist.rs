//! `cargo xtask dist`: packages that need no Rust. `xtask/dist/pack.py` makes them from a built binary.

use std::path::PathBuf;

use crate::failure::{Result, fail};
use crate::process::{cargo, command, succeed};
use crate::workspace::Workspace;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The oldest C library that the binary runs with, if `cargo-zigbuild` is there.
const GLIBC: &str = "2.31";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pack this binary; without it, the profile `dist` is built
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// The folder for the packages; it is emptied [default: target/packages]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The address that the install script downloads from [default: its own folder]
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Install each package into an empty home and run the demo there
    #[arg(long)]
    r#try: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let tools = workspace.root.join("xtask/dist");
    let out = options.out.clone().unwrap_or_else(|| workspace.target.join("packages"));
    let binary = match &options.binary {
        Some(binary) if !binary.is_file() => {
            return fail(format!("{} is no file: name a built binary", binary.display()));
        }
        Some(binary) => binary.clone(),
        None => build(&workspace)?,
    };
    let mut pack = command("python3");
    pack.arg(tools.join("pack.py")).arg(binary).arg(&out).args(&options.base);
    succeed(&mut pack)?;
    if options.r#try {
        succeed(command("bash").arg(tools.join("try.sh")).arg(&out))?;
    }
    Ok(())
}

/// Builds what is published: for an old C library with `cargo-zigbuild`, else for that of this machine.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let has_zig =
        command("cargo-zigbuild").arg("--version").output().is_ok_and(|output| output.status.success());
    let mut build = cargo();
    build.current_dir(&workspace.root);
    let folder = if has_zig {
        build.args(["zigbuild", "--target", &format!("{TARGET}.{GLIBC}")]);
        workspace.target.join(TARGET)
    } else {
        println!("note: no cargo-zigbuild; the binary needs the C library of this machine or a later one");
        build.arg("build");
        workspace.target.clone()
    };
    succeed(build.args(["--locked", "--profile", "dist", "--package", "refrain"]))?;
    Ok(folder.join("dist/refrain"))
}

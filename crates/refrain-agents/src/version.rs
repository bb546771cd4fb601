//! The installed version of an agent's program, from its files: asking the program would take as long as starting an
//! attempt.

use std::fs;
use std::path::Path;

/// How many levels above a program its package can be.
const FAR: usize = 6;

/// The version of the program at `path`: of the npm package that it belongs to, or of the folder that is named after
/// it.
pub fn installed(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let named = || {
        let name = path.file_name()?.to_str()?;
        name.split('.').all(|part| part.parse::<u32>().is_ok()).then(|| name.to_owned())
    };
    path.ancestors().skip(1).take(FAR).find_map(of_package).or_else(named)
}

fn of_package(dir: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Package {
        version: String,
    }
    let text = fs::read(dir.join("package.json")).ok()?;
    Some(serde_json::from_slice::<Package>(&text).ok()?.version)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_program_has_the_version_of_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("node_modules/@some/agent");
        fs::create_dir_all(package.join("bin")).unwrap();
        fs::create_dir_all(dir.path().join("versions")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        fs::File::create(package.join("bin/agent.js")).unwrap();
        fs::File::create(dir.path().join("versions/1.2.3")).unwrap();
        fs::File::create(dir.path().join("bin/plain")).unwrap();
        let program = dir.path().join("agent");
        symlink(package.join("bin/agent.js"), &program).unwrap();
        assert_eq!(installed(&program), None);
        serde_json::to_writer(
            fs::File::create(package.join("package.json")).unwrap(),
            &serde_json::json!({"name": "@some/agent", "version": "4.5.6"}),
        )
        .unwrap();
        assert_eq!(installed(&program).as_deref(), Some("4.5.6"));
        assert_eq!(installed(&dir.path().join("versions/1.2.3")).as_deref(), Some("1.2.3"));
        assert_eq!(installed(&dir.path().join("bin/plain")), None);
    }
}

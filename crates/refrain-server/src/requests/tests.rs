//! A request handler on a folder of its own, without another process.

use camino::Utf8PathBuf;
use refrain_app::{Caller, Context};
use refrain_engine::Host;

use super::{RefusalKind, RequestHandler, UsageOf};

/// A project that nothing was done in yet, and a request handler for it.
pub(crate) fn place() -> (tempfile::TempDir, RequestHandler) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    let home = path.join("home");
    let host = Host {
        program: "/nowhere/refrain".into(),
        env: vec![("TRACEPARENT".into(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into())],
        data_home: home.clone(),
        state_home: home.clone(),
        config_home: home,
        version: "test".into(),
    };
    let context = Context::new(path, host, Caller::Person);
    let handler = RequestHandler::open(&context, &[]).unwrap();
    (dir, handler)
}

#[test]
fn the_servers_own_environment_is_not_passed_to_loops() {
    let (_dir, handler) = place();
    assert!(handler.context.host.env.is_empty(), "{:?}", handler.context.host.env);
}

#[test]
fn of_a_project_that_is_open_in_part_nothing_is_added_up() {
    let (dir, handler) = place();
    let path = handler.roots[0].clone();
    std::fs::create_dir_all(dir.path().join(".git")).unwrap();
    std::fs::File::create_new(dir.path().join(".git/HEAD")).unwrap();
    std::fs::create_dir_all(dir.path().join("sub")).unwrap();
    let added_up = |root: &str| {
        let handler = RequestHandler::open(&handler.context, &[path.join(root)]).unwrap();
        let (usage, metrics) = (handler.usage(&UsageOf::default()), handler.metrics());
        [usage.map(drop), metrics.map(drop)].map(|it| it.map_err(|refusal| refusal.kind()))
    };
    assert_eq!(added_up("."), [Ok(()), Ok(())]);
    assert_eq!(added_up("sub"), [Err(RefusalKind::NotFound), Err(RefusalKind::NotFound)]);
}

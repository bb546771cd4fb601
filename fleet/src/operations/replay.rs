//! The workflow over histories that were recorded, without a server: a change that loops in flight would not survive fails
//! here. `REFRAIN_HISTORIES` names a folder with more of them, which the tests with a server write.

use std::path::PathBuf;
use std::{env, fs};

use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

use crate::workflow::FleetLoop;

#[expect(clippy::disallowed_methods, reason = "the runner of the tests says where they are")]
fn recorded() -> Option<PathBuf> {
    env::var_os("REFRAIN_HISTORIES").map(PathBuf::from).filter(|folder| folder.is_dir())
}

#[tokio::test]
async fn recorded_histories_replay_to_the_same_commands() {
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/histories"));
    let folders = [Some(own), recorded()].into_iter().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in &files {
        let history = WorkflowHistory::from_json(&fs::read(file).unwrap()).unwrap();
        let options = WorkflowReplayerOptions::new().register_workflow::<FleetLoop>().unwrap().build();
        let replayed = WorkflowReplayer::new(options).unwrap().replay_workflow(history).await;
        assert!(replayed.is_ok(), "{}: {}", file.display(), replayed.unwrap_err());
    }
    println!("replayed {} histories", files.len());
}

/// Runs what blocks where blocking is allowed.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        // These tasks are never cancelled: the task panicked, so this thread panics too.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

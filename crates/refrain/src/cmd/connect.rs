pub(crate) mod acp_bridge;
pub(crate) mod fleet;
pub(crate) mod fleet_plan;
pub(crate) mod hook;
pub(crate) mod mcp;
pub(crate) mod plugin;
pub(crate) mod serve;
pub(crate) mod tick;

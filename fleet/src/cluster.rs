//! A cluster of Ballista: its scheduler and executors with this crate's table and function, and the client.
//!
//! The client sends the plan of a query with the list of files. The scheduler divides the plan into stages, and the
//! executors read the files and exchange the results of stages. All of them need the tables at the same path of a shared
//! file system.
//!
//! The ports of a cluster have no access control: every program that can connect to them can read and write files as the
//! user of the executors, because a plan may name any file.

mod codec;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use ballista_core::error::BallistaError;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::{default_config_producer, default_session_builder};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::error::DataFusionError;
use datafusion::execution::{FunctionRegistry as _, SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::error::FleetError;
use crate::life::life_id;
use crate::stack_path::stack_path;
use codec::FleetCodec;

/// A larger plan or batch is an error.
const MAX_MESSAGE: u32 = 256 << 20;
/// The seconds between two signs of life of an executor, and the seconds after which a silent executor is dead.
const HEARTBEAT: u64 = 5;
const SILENCE: u64 = 20;

fn failed(error: BallistaError) -> FleetError {
    FleetError::from(DataFusionError::External(Box::new(error)))
}

fn config() -> SessionConfig {
    default_config_producer()
        .with_ballista_logical_extension_codec(Arc::new(FleetCodec::default()))
        .with_ballista_grpc_client_max_message_size(MAX_MESSAGE as usize)
}

/// A session whose queries run on a cluster.
pub(crate) async fn connected(scheduler: &str, local: SessionState) -> Result<SessionContext, FleetError> {
    let config = local
        .config()
        .clone()
        .with_ballista_logical_extension_codec(Arc::new(FleetCodec::default()))
        .with_ballista_grpc_client_max_message_size(MAX_MESSAGE as usize);
    let state = SessionStateBuilder::new_from_existing(local).with_config(config).build();
    let context = SessionContext::remote_with_state(&format!("df://{scheduler}"), state).await?;
    context.register_udf(life_id());
    context.register_udf(stack_path());
    Ok(context)
}

/// Runs a scheduler until it fails.
pub(crate) async fn run_scheduler(address: SocketAddr, name: &str) -> Result<(), FleetError> {
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        external_host: name.to_owned(),
        executor_timeout_seconds: SILENCE,
        expire_dead_executor_interval_seconds: HEARTBEAT,
        no_executors_grace_period_seconds: SILENCE,
        grpc_server_max_decoding_message_size: MAX_MESSAGE,
        grpc_server_max_encoding_message_size: MAX_MESSAGE,
        grpc_client_max_message_size: MAX_MESSAGE,
        override_config_producer: Some(Arc::new(config)),
        override_session_builder: Some(Arc::new(|config| {
            let mut state = default_session_builder(config)?;
            state.register_udf(Arc::new(life_id()))?;
            state.register_udf(Arc::new(stack_path()))?;
            Ok(state)
        })),
        override_logical_codec: Some(Arc::new(FleetCodec::default())),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    start_server(cluster, address, Arc::new(config)).await.map_err(failed)
}

/// The place and the limits of an executor.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorPlace {
    pub(crate) scheduler_host: String,
    pub(crate) scheduler_port: u16,
    pub(crate) address: IpAddr,
    /// The name under which the others reach this executor.
    pub(crate) name: Option<String>,
    /// The port for results of stages.
    pub(crate) port: u16,
    /// The port for tasks.
    pub(crate) grpc_port: u16,
    /// The number of tasks at the same time.
    pub(crate) threads: usize,
    /// The bytes for sorting and grouping.
    pub(crate) memory: u64,
}

/// Runs an executor until it gets a signal, or the scheduler stops it. `folder` gets the results of stages.
pub(crate) async fn run_executor(place: ExecutorPlace, folder: &Path) -> Result<(), FleetError> {
    let mut functions = BallistaFunctionRegistry::default();
    for function in [life_id(), stack_path()] {
        functions.scalar_functions.insert(function.name().to_owned(), Arc::new(function));
    }
    let config = ExecutorProcessConfig {
        bind_host: place.address.to_string(),
        external_host: place.name,
        port: place.port,
        grpc_port: place.grpc_port,
        scheduler_host: place.scheduler_host,
        scheduler_port: place.scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores: place.threads,
        work_dir: Some(folder.to_string_lossy().into_owned()),
        job_data_ttl_seconds: 3600,
        job_data_clean_up_interval_seconds: 600,
        grpc_max_decoding_message_size: MAX_MESSAGE,
        grpc_max_encoding_message_size: MAX_MESSAGE,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        memory_pool_size: Some(place.memory),
        override_function_registry: Some(Arc::new(functions)),
        override_config_producer: Some(Arc::new(config)),
        override_logical_codec: Some(Arc::new(FleetCodec::default())),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await.map_err(failed)
}

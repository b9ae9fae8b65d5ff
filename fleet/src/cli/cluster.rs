//! `scheduler`, `executor` and `up`.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use about_memory::temporary::TemporaryFolder;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::Outcome;
use crate::cluster::{ExecutorPlace, run_executor, run_scheduler};
use crate::error::FleetError;

pub(super) const UP_EXAMPLES: &str = "Examples:\n  memory-fleet up --executors 3\n  memory-fleet leaks fleet --engine ballista://127.0.0.1:50050\n\nThe \
     ports are on 127.0.0.1 and have no access control: while the processes run, every user of this machine can read and \
     write files as you. Use this command only on a machine without other users. Ctrl-C ends all processes.";
pub(super) const SCHEDULER_EXAMPLES: &str = "Example:\n  memory-fleet scheduler --address 0.0.0.0 --name scheduler.fleet.svc\n\nThe ports have no access control: \
     whoever reaches them can read and write files as the user of the executors.";
pub(super) const EXECUTOR_EXAMPLES: &str = "Example:\n  memory-fleet executor --scheduler scheduler.fleet.svc:50050 --address 0.0.0.0 --name 10.1.2.3\n\nAll \
     executors, and the program that asks, need the tables at the same path. The ports have no access control: whoever \
     reaches them can read and write files as the user of the executors.";

/// The time for a process to start, and the time for it to end.
const START: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// Start a scheduler and executors on this machine, for a trial of --engine ballista
#[derive(Args)]
pub(super) struct UpCommand {
    /// The port of the scheduler; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    port: u16,
    /// The number of executors
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    executors: u32,
    /// The number of threads of each executor
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// The maximum number of megabytes (MiB) of each executor for sorting and grouping
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,
}

/// Run the scheduler of a cluster of Ballista
#[derive(Args)]
pub(super) struct SchedulerCommand {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The port
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    port: u16,
    /// The name under which executors reach this scheduler [default: the address]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// End when the standard input ends
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Run an executor of a cluster of Ballista
#[derive(Args)]
pub(super) struct ExecutorCommand {
    /// The scheduler, as HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: String,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The name under which others reach this executor [default: the address from which it connects]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The port for results
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    port: u16,
    /// The port for tasks
    #[arg(long, value_name = "PORT", default_value_t = 50052)]
    task_port: u16,
    /// The number of threads [default: one for each processor]
    #[arg(long, value_name = "THREADS", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// The maximum number of megabytes (MiB) for sorting and grouping; more goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(16..))]
    memory: u32,
    /// The folder for the results of stages [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,
    /// End when the standard input ends
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Waits for SIGTERM, Ctrl-C or, on request, the end of the standard input.
async fn ended(until_input_ends: bool) -> Result<(), FleetError> {
    let (send, mut input) = tokio::sync::mpsc::channel::<()>(1);
    // While a sender exists, the channel waits.
    let _kept = (!until_input_ends).then(|| send.clone());
    if until_input_ends {
        // A thread, because a read of the standard input cannot be cancelled.
        std::thread::spawn(move || {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            drop(send);
        });
    }
    let mut terminated = signal(SignalKind::terminate()).map_err(FleetError::Output)?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
        _ = input.recv() => {}
    }
    Ok(())
}

impl SchedulerCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let name = self.name.unwrap_or_else(|| self.address.to_string());
        tokio::select! {
            done = run_scheduler(SocketAddr::new(self.address, self.port), &name) => done?,
            done = ended(self.until_input_ends) => done?,
        }
        Ok(Outcome::Done)
    }
}

impl ExecutorCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let wrong = || FleetError::Usage(format!("{:?} is not HOST:PORT", self.scheduler));
        let (host, port) = self.scheduler.rsplit_once(':').ok_or_else(wrong)?;
        let place = ExecutorPlace {
            scheduler_host: host.to_owned(),
            scheduler_port: port.parse().map_err(|_| wrong())?,
            address: self.address,
            name: self.name.clone(),
            port: self.port,
            grpc_port: self.task_port,
            threads: self.threads,
            memory: u64::from(self.memory) << 20,
        };
        let temporary = TemporaryFolder::new().map_err(FleetError::Output)?;
        let folder = self.work.clone().unwrap_or_else(|| temporary.path().to_owned());
        tokio::select! {
            done = run_executor(place, &folder) => done?,
            done = ended(self.until_input_ends) => done?,
        }
        Ok(Outcome::Done)
    }
}

/// The processes of a cluster. They end when their standard input ends, so also when this process is killed.
struct ClusterProcesses(Vec<Child>);

impl ClusterProcesses {
    fn start(&mut self, program: &Path, arguments: &[String], port: u16) -> Result<u32, FleetError> {
        let failed = |error: &dyn core::fmt::Display| FleetError::at(program, error);
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let pid = child.id();
        self.0.push(child);
        let child = self.0.last_mut().expect("a child was pushed above");
        let end = Instant::now() + START;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(failed(&format!("{} ended with {status}", arguments[0])));
            }
            if Instant::now() > end {
                return Err(failed(&format!("{} does not listen on port {port}", arguments[0])));
            }
            std::thread::sleep(LOOK);
        }
        Ok(pid)
    }
}

impl Drop for ClusterProcesses {
    fn drop(&mut self) {
        // Executors end before their scheduler.
        for child in self.0.iter_mut().rev() {
            drop(child.stdin.take());
            let end = Instant::now() + END;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(LOOK);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> Result<u16, FleetError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(FleetError::Output)?;
    Ok(listener.local_addr().map_err(FleetError::Output)?.port())
}

impl UpCommand {
    pub(super) async fn run(self) -> Result<Outcome, FleetError> {
        let program = std::env::current_exe().map_err(FleetError::Output)?;
        let port = if self.port == 0 { free_port()? } else { self.port };
        let mut processes = ClusterProcesses(Vec::new());
        let text = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
        let scheduler = text(&["scheduler", "--port", &port.to_string(), "--until-input-ends"]);
        processes.start(&program, &scheduler, port)?;
        let mut pids = Vec::new();
        for _ in 0..self.executors {
            let (results, tasks) = (free_port()?, free_port()?);
            let executor = text(&[
                "executor",
                "--scheduler",
                &format!("127.0.0.1:{port}"),
                "--port",
                &results.to_string(),
                "--task-port",
                &tasks.to_string(),
                "--threads",
                &self.threads.to_string(),
                "--memory",
                &self.memory.to_string(),
                "--until-input-ends",
            ]);
            pids.push(processes.start(&program, &executor, results)?.to_string());
        }
        let mut out = io::stdout();
        writeln!(out, "ballista://127.0.0.1:{port}\nexecutors: {}", pids.join(" "))
            .map_err(FleetError::Output)?;
        let watch = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Some(Ok(Some(status))) = processes.0.first_mut().map(Child::try_wait) {
                    return FleetError::at(&program, format!("scheduler ended with {status}"));
                }
            }
        };
        tokio::select! {
            done = ended(false) => done?,
            error = watch => return Err(error),
        }
        Ok(Outcome::Done)
    }
}

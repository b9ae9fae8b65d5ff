//! The services, versions, processes, paths and planted causes of a simulation.

use super::SimulationOptions;
use super::random::{bits, unit};
use super::truth::{PlantedCause, PlantedKind, SimulationTruth};
use crate::day::DAY_SECONDS;

const SERVICES: [&str; 5] = ["auth", "cart", "feed", "mail", "search"];
const AREAS: [&str; 10] =
    ["cache", "index", "network", "parser", "sessions", "storage", "threads", "tokens", "users", "workers"];
const PARTS: [&str; 8] = ["blocks", "buffers", "entries", "keys", "maps", "names", "pages", "queues"];
/// A service gets another version after this time.
const VERSION_SECONDS: u64 = 5 * DAY_SECONDS;
/// The probability that a process restarts on a day.
const RESTARTS: f64 = 0.03;

/// A life of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedLife {
    /// The start, in seconds since the first day; negative for processes that ran before.
    pub(super) start: i64,
    /// The index of the version.
    pub(super) version: usize,
    pub(super) pid: u32,
}

/// A process of a host.
#[derive(Debug)]
pub(super) struct PlannedProcess {
    pub(super) host: String,
    /// In the order of their starts.
    pub(super) lives: Vec<PlannedLife>,
    /// The second from which on the process does not report.
    pub(super) silent_from: i64,
    /// An outlier's path, and the bytes that it holds more.
    pub(super) more: Option<(usize, f64)>,
}

/// A path of a service.
#[derive(Debug)]
pub(super) struct PlannedPath {
    pub(super) path: String,
    pub(super) base: f64,
    /// The share by which the amount changes in a day, and the time of its maximum as a share of the day.
    pub(super) rhythm: f64,
    pub(super) phase: f64,
    /// Whether the path fills up after a start.
    pub(super) warms_up: bool,
    /// The first version with a change, and the share by which the path is larger.
    pub(super) change: Option<(usize, f64)>,
    /// The first version with a leak, and its bytes in a second.
    pub(super) leak: Option<(usize, f64)>,
    /// Bytes in a second, across restarts.
    pub(super) growth: f64,
}

#[derive(Debug)]
pub(super) struct PlannedService {
    pub(super) index: u64,
    pub(super) name: &'static str,
    pub(super) versions: Vec<String>,
    pub(super) processes: Vec<PlannedProcess>,
    pub(super) paths: Vec<PlannedPath>,
}

#[derive(Debug)]
pub(super) struct SimulationPlan {
    pub(super) services: Vec<PlannedService>,
    causes: Vec<PlantedCause>,
}

impl SimulationPlan {
    pub(super) fn new(options: &SimulationOptions) -> Self {
        let count = (options.processes / 20).clamp(1, SERVICES.len() as u32);
        let mut services: Vec<PlannedService> = (0..count)
            .map(|index| {
                let processes = options.processes / count + u32::from(index < options.processes % count);
                service(options, index as usize, processes)
            })
            .collect();
        let mut causes = Vec::new();
        for number in 0..options.planted {
            plant(options, &mut services, number, &mut causes);
        }
        // A few hosts of each hundred.
        for number in 0..options.processes.div_ceil(400) {
            plant_host(options, &mut services, number, &mut causes);
        }
        Self { services, causes }
    }

    pub(super) fn truth(&self) -> SimulationTruth {
        SimulationTruth { causes: self.causes.clone() }
    }
}

fn service(options: &SimulationOptions, index: usize, processes: u32) -> PlannedService {
    let (seed, name, key) = (options.seed, SERVICES[index], index as u64);
    let length = u64::from(options.days) * DAY_SECONDS;
    // Services are deployed at different times of the day.
    let offset = bits(seed, &[1, key]) % DAY_SECONDS;
    let deploys: Vec<u64> =
        (1..).map(|number| number * VERSION_SECONDS + offset).take_while(|time| *time < length).collect();
    let versions = (0..=deploys.len()).map(|number| format!("1.{number}.0")).collect();
    let processes = (0..u64::from(processes))
        .map(|process| {
            let pid = |number: u64| 1000 + (bits(seed, &[2, key, process, number]) % 60_000) as u32;
            let first = -((bits(seed, &[3, key, process]) % 40_000) as i64);
            let mut lives = vec![PlannedLife { start: first, version: 0, pid: pid(0) }];
            for (number, time) in deploys.iter().enumerate() {
                // A deployment takes an hour.
                let start = (time + bits(seed, &[4, key, process, number as u64]) % 3600) as i64;
                lives.push(PlannedLife { start, version: number + 1, pid: pid(number as u64 + 1) });
            }
            for day in 0..u64::from(options.days) {
                let number = bits(seed, &[5, key, process, day]);
                if unit(number) < RESTARTS {
                    let start = (day * DAY_SECONDS + number % DAY_SECONDS) as i64;
                    let version =
                        lives.iter().filter(|life| life.start <= start).map(|life| life.version).max();
                    let (version, pid) = (version.unwrap_or_default(), pid(1000 + day));
                    lives.push(PlannedLife { start, version, pid });
                }
            }
            lives.sort_by_key(|life| life.start);
            let host = format!("{name}-{process:05}");
            PlannedProcess { host, lives, silent_from: i64::MAX, more: None }
        })
        .collect();
    let mut paths: Vec<PlannedPath> =
        (0..options.paths as usize - 3).map(|path| planned_path(seed, key, path)).collect();
    paths.push(PlannedPath {
        path: "explicit/heap-unclassified".to_owned(),
        base: 24_000_000.0,
        rhythm: 0.05,
        phase: 0.5,
        warms_up: false,
        change: None,
        leak: None,
        growth: 0.0,
    });
    paths.sort_by(|one, other| one.path.cmp(&other.path));
    PlannedService { index: key, name, versions, processes, paths }
}

fn planned_path(seed: u64, service: u64, path: usize) -> PlannedPath {
    let number = |what: u64| unit(bits(seed, &[6, service, path as u64, what]));
    let (area, part) = (AREAS[path % AREAS.len()], PARTS[path / AREAS.len() % PARTS.len()]);
    let name = match path / (AREAS.len() * PARTS.len()) {
        0 => format!("explicit/{area}/{part}"),
        more => format!("explicit/{area}/{part}/shard-{more:04}"),
    };
    PlannedPath {
        path: name,
        // From 256 KiB to 64 MiB.
        base: 262_144.0 * 256_f64.powf(number(0)),
        rhythm: 0.1 * number(1),
        phase: number(2),
        warms_up: number(3) < 0.2,
        change: None,
        leak: None,
        growth: 0.0,
    }
}

/// Plants a change, a leak or growth at a path that has none.
fn plant(
    options: &SimulationOptions,
    services: &mut [PlannedService],
    number: u32,
    causes: &mut Vec<PlantedCause>,
) {
    let random = |what: u64| bits(options.seed, &[7, u64::from(number), what]);
    let at = number as usize % services.len();
    let service = &mut services[at];
    let versions = service.versions.len();
    // The third leak of each service is hidden: no report counts it.
    let is_hidden = number % 20 == 7;
    let free = |path: &PlannedPath| path.change.is_none() && path.leak.is_none() && path.growth == 0.0;
    let count = service.paths.len();
    let start = random(0) as usize % count;
    let hidden = |path: &PlannedPath| path.path == "explicit/heap-unclassified";
    let index = (start..start + count)
        .map(|index| index % count)
        .find(|index| free(&service.paths[*index]) && hidden(&service.paths[*index]) == is_hidden);
    let Some(path) = index.map(|index| &mut service.paths[index]) else { return };
    // A version in the middle has processes before and after it.
    let version = 1 + random(1) as usize % versions.saturating_sub(2).max(1);
    let share = unit(random(2));
    let mut cause = PlantedCause {
        kind: PlantedKind::Growth,
        service: service.name.to_owned(),
        path: path.path.clone(),
        version: String::new(),
        is_old: false,
        host: String::new(),
    };
    if number % 7 == 6 {
        let length = f64::from(options.days) * DAY_SECONDS as f64;
        path.growth = path.base * (0.5 + share) / length;
    } else if (number % 2 == 1 || is_hidden) && versions > 1 {
        // A quarter of the leaks is in all versions.
        let since = if number % 8 == 3 { 0 } else { version };
        path.leak = Some((since, path.base * (0.15 + 0.35 * share) / DAY_SECONDS as f64));
        cause.kind = PlantedKind::Leak;
        cause.is_old = since == 0;
        cause.version = service.versions[since].clone();
    } else if versions > 1 {
        path.change = Some((version, 0.3 + 0.7 * share));
        cause.kind = PlantedKind::Change;
        cause.version = service.versions[version].clone();
    } else {
        return;
    }
    causes.push(cause);
}

/// Plants a process that holds more than its peers, and a process that stops reporting.
fn plant_host(
    options: &SimulationOptions,
    services: &mut [PlannedService],
    number: u32,
    causes: &mut Vec<PlantedCause>,
) {
    let random = |what: u64| bits(options.seed, &[8, u64::from(number), what]);
    let at = number as usize % services.len();
    let service = &mut services[at];
    let total: f64 = service.paths.iter().map(|path| path.base).sum();
    let (processes, paths) = (service.processes.len(), service.paths.len());
    if processes < 10 {
        return;
    }
    let (outlier, silent) =
        (random(0) as usize % (processes / 2), processes / 2 + random(1) as usize % (processes / 2));
    let path = random(2) as usize % paths;
    let cause = |kind, path: &str, host: &str| PlantedCause {
        kind,
        service: service.name.to_owned(),
        path: path.to_owned(),
        version: String::new(),
        is_old: false,
        host: host.to_owned(),
    };
    causes.push(cause(PlantedKind::Outlier, &service.paths[path].path, &service.processes[outlier].host));
    causes.push(cause(PlantedKind::Silence, "", &service.processes[silent].host));
    service.processes[outlier].more = Some((path, 0.5 * total));
    let end = i64::from(options.days) * DAY_SECONDS as i64;
    service.processes[silent].silent_from = end - 43_200 - (random(3) % 43_200) as i64;
}

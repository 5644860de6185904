//! Whether the host has the memory that its ranks ask for.
//!
//! Segments take memory only when they are touched, so that a host which is too small would be
//! noticed late: by the kernel, which kills a process, or in a container as SIGBUS. [`admit`]
//! compares before anything is attached, and says which limit is too low.

use std::fs;
use std::path::{Component, Path, PathBuf};

use argonet_base::size::HumanSize;

use crate::error::SegmentError;

/// Kept free for everything that is not a segment, in percent of what is available.
const RESERVE_PERCENT: u64 = 5;

/// Memory that this process and its neighbors can have on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMemory {
    available_bytes: u64,
    /// The part of [`available_bytes`](Self::available_bytes) that is kept free.
    reserve_percent: u64,
    limited_by: String,
    total_bytes: u64,
}

impl HostMemory {
    /// Asks the running system.
    ///
    /// # Errors
    ///
    /// [`SegmentError::Probe`] when `/proc/meminfo` cannot be read or lacks what every Linux since
    /// 3.14 has. Control groups that cannot be read set no limit.
    pub fn probe() -> Result<Self, SegmentError> {
        Self::probe_at(Path::new("/"))
    }

    /// Asks a system whose `/proc` and `/sys` lie under `root`.
    ///
    /// # Errors
    ///
    /// As [`probe`](Self::probe).
    pub fn probe_at(root: &Path) -> Result<Self, SegmentError> {
        let path = root.join("proc/meminfo");
        let failed = |reason: String| SegmentError::Probe {
            path: path.clone(),
            reason,
        };
        let meminfo = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let field = |name: &str| {
            meminfo_bytes(&meminfo, name)
                .ok_or_else(|| failed(format!("it has no line '{name}: <number> kB'")))
        };
        let mut host = Self {
            available_bytes: field("MemAvailable")?,
            reserve_percent: RESERVE_PERCENT,
            limited_by: "MemAvailable in /proc/meminfo".to_owned(),
            total_bytes: field("MemTotal")?,
        };
        for group in groups(root) {
            for level in group.levels() {
                for (limit_file, limit) in group.limits(&level) {
                    host.total_bytes = host.total_bytes.min(limit);
                    let available = group.available(&level, limit);
                    if available < host.available_bytes {
                        host.available_bytes = available;
                        // As the file is called on the running system.
                        let file = limit_file.strip_prefix(root).unwrap_or(&limit_file);
                        host.limited_by = format!("/{} ({})", file.display(), HumanSize(limit));
                    }
                }
            }
        }
        Ok(host)
    }

    /// The same host with what [`available_bytes`](Self::available_bytes) said to another rank of
    /// it, so that all ranks decide alike.
    #[must_use]
    pub fn with_available(mut self, available_bytes: u64) -> Self {
        self.available_bytes = available_bytes;
        self.reserve_percent = 0;
        self
    }

    /// Memory that segments can have now, in bytes: the least that the host and each control
    /// group on the way from this process to the root have left, counting page cache that can be
    /// dropped as free, less 5 %.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.available_bytes - self.available_bytes / 100 * self.reserve_percent
    }

    /// Memory that the host or the tightest control group has in all, in bytes: of which
    /// fractions in `GASNET_MAX_SEGSIZE` are taken.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The source of the limit, for people.
    #[must_use]
    pub fn limited_by(&self) -> &str {
        &self.limited_by
    }
}

/// Checks that the host has the memory that its ranks ask for; `requests` holds a length in bytes
/// for each.
///
/// # Errors
///
/// [`SegmentError::NotEnoughMemory`] with both numbers, the limit and the settings to change.
pub fn admit(requests: &[u64], host: &HostMemory) -> Result<(), SegmentError> {
    let needed = requests
        .iter()
        .fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let available = host.available_bytes();
    if needed <= available {
        return Ok(());
    }
    let ranks = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    let each = available / u64::from(ranks.max(1));
    Err(SegmentError::NotEnoughMemory {
        needed,
        available,
        limited_by: host.limited_by.clone(),
        ranks,
        hint: format!(
            "let the program ask for at most {} for each rank, lower ARGONET_SEGMENT or GASNET_MAX_SEGSIZE, run fewer \
             ranks on this host, or raise that limit",
            HumanSize(each)
        ),
    })
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The two generations of control groups, which a host may use at once for different resources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The control group of this process that may limit memory.
struct Group {
    version: Version,
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    /// The group's directory, `mount` or below it.
    directory: PathBuf,
}

impl Group {
    /// The group and those that contain it, up to the root of the hierarchy: each may set a limit.
    fn levels(&self) -> Vec<PathBuf> {
        self.directory
            .ancestors()
            .take_while(|level| level.starts_with(&self.mount))
            .map(Path::to_owned)
            .collect()
    }

    /// The limits that this level sets, with the files that set them.
    ///
    /// `max` and files that are missing set none; version 1 writes a number beyond all memory
    /// instead.
    fn limits(&self, level: &Path) -> Vec<(PathBuf, u64)> {
        let names: &[&str] = match self.version {
            Version::V1 => &["memory.limit_in_bytes"],
            // Beyond `high` the kernel slows the group down until it hardly runs.
            Version::V2 => &["memory.max", "memory.high"],
        };
        names
            .iter()
            .map(|name| level.join(name))
            .filter_map(|file| read_number(&file).map(|limit| (file, limit)))
            .collect()
    }

    /// Memory that a level with this limit has left.
    fn available(&self, level: &Path, limit: u64) -> u64 {
        let (usage, cache) = match self.version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        let used = read_number(&level.join(usage)).unwrap_or(0);
        let cache = stat_field(&level.join("memory.stat"), cache).unwrap_or(0);
        limit.saturating_sub(used.saturating_sub(cache))
    }
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn stat_field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse().ok()
}

/// The memory groups of this process in both generations, as far as they can be found.
fn groups(root: &Path) -> Vec<Group> {
    let membership = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    membership
        .lines()
        .filter_map(|line| {
            // hierarchy-ID:controller-list:path, the list being empty for version 2
            let mut fields = line.splitn(3, ':');
            let (_id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let version = if controllers.is_empty() {
                Version::V2
            } else if controllers.split(',').any(|name| name == "memory") {
                Version::V1
            } else {
                return None;
            };
            Some(find_group(root, version, path, &mounts))
        })
        .collect()
}

/// Where the group at `path` of its hierarchy is found in the file system.
fn find_group(root: &Path, version: Version, path: &str, mounts: &str) -> Group {
    let found = mounts.lines().find_map(|line| cgroup_mount(line, version));
    let (mounted_part, mount_point) = found.unwrap_or(match version {
        Version::V1 => ("/", "/sys/fs/cgroup/memory"),
        Version::V2 => ("/", "/sys/fs/cgroup"),
    });
    let mount = under(root, mount_point);
    // In a container the mount shows a part of the hierarchy, and the path may be given from its
    // true root, or from another group's view ("/../.."). A path that cannot be followed counts as
    // the mount.
    let directory = Path::new(path)
        .strip_prefix(mounted_part)
        .ok()
        .filter(|inner| {
            inner
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::RootDir))
        })
        .map(|inner| mount.join(inner))
        .filter(|directory| directory.is_dir())
        .unwrap_or_else(|| mount.clone());
    Group {
        version,
        mount,
        directory,
    }
}

/// Which part of the hierarchy a line of mountinfo mounts, and where, if it is the one sought.
///
/// `36 35 98:0 /part /where rw,noatime shared:1 - cgroup2 none rw`
fn cgroup_mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (part, place) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
    let sought = match version {
        Version::V1 => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        Version::V2 => kind == "cgroup2",
    };
    sought.then_some((part, place))
}

fn under(root: &Path, absolute: &str) -> PathBuf {
    root.join(absolute.trim_start_matches('/'))
}

#[cfg(test)]
mod tests;

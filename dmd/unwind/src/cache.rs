//! The rules that the walker has compiled, for all threads: pc -> rule.
//!
//! A slot is one word, with the pc in its upper 48 bits. The lower 16 bits contain the rule itself if it is a usual
//! rule of a permanent module, and otherwise the index of a wide rule. So a lookup is usually one load. A thread can
//! read or replace a slot without a lock: readers see either the old rule or the new rule.
//!
//! A flag excludes writers from each other. A writer tries to set the flag and never waits for it: if another writer
//! has set the flag, the writer does not cache the rule that it compiled. A wait would never end in a signal handler
//! that interrupts a writer. When the table is half full, a larger table replaces it. The old table stays mapped, since
//! readers may still use it; all old tables together take at most the size of the newest table. When there is no room
//! for another module or wide rule, for example in a program that keeps loading libraries, an empty table replaces the
//! full table.
//!
//! A rule of a module that can be unloaded contains the number of a record of that module. Before a walk uses such a
//! rule, it checks that the module is still loaded: by its build id or, if it has none, by its path and some of its
//! contents.

use crate::arch::pack;
use crate::module::{ModuleIdentity, UnwindModule};
use crate::rule::UnwindRule;
use crate::sys::map;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The owner of the rules; one for each process.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: AtomicPtr<CacheSlots>,
    writing: AtomicBool,
    bytes: AtomicUsize,
    compiled: AtomicUsize,
}

pub(crate) static CACHE: Cache = Cache {
    slots: AtomicPtr::new(core::ptr::null_mut()),
    writing: AtomicBool::new(false),
    bytes: AtomicUsize::new(0),
    compiled: AtomicUsize::new(0),
};

/// Clears the writers' flag in the child of a fork. A thread that does not exist in the child may have held it.
pub fn after_fork_in_child() {
    CACHE.writing.store(false, Ordering::Release);
}

/// The number of rules that the walker has compiled, including rules that it could not keep.
pub fn compiled_rules() -> usize {
    CACHE.compiled.load(Ordering::Relaxed)
}

/// The number of bytes that the walker's tables have mapped. The tables occupy less memory, since the walker never
/// touches most of the pages.
pub fn mapped_bytes() -> usize {
    CACHE.bytes()
}

/// The bit of a slot's lower half that is set if this half is the index of a wide rule.
const WIDE: u16 = 1 << 15;
const SMALLEST: u32 = 12;
/// The logarithm of the maximum number of slots. The slots then take 8 MiB.
const LARGEST: u32 = 20;
/// The maximum number of mapped bytes. Above it, no new table replaces a full table, and the walker compiles the rule
/// of a pc again each time if the table does not contain the pc.
const MOST_BYTES: usize = 64 << 20;

/// A table of `1 << bits` slots. The slots follow this header in the same mapping.
#[derive(Debug)]
#[repr(C)]
struct CacheSlots {
    bits: u32,
    used: AtomicUsize,
    /// The wide rules and modules to which the slots of this table, and of the smaller tables before it, refer. Mapped
    /// when they are first needed.
    wide: AtomicPtr<WideRow>,
}

const MAX_WIDE: usize = 1 << 15;
const MAX_MODULES: usize = 1 << 12;
const HEADS: usize = 1 << 10;

/// Wide rules and modules, in one mapping. The kernel provides only the pages that the walker uses.
#[repr(C)]
struct WideRow {
    rules_used: AtomicUsize,
    modules_used: AtomicUsize,
    /// Chains of rules with equal hashes, linked through `next`. A link is an index plus one.
    heads: [AtomicU16; HEADS],
    next: [AtomicU16; MAX_WIDE],
    /// The rule's word in the lower 48 bits. The upper bits contain the number of the module's record, or 0 for a
    /// permanent module.
    rules: [AtomicU64; MAX_WIDE],
    modules: [CacheRecord; MAX_MODULES],
}

/// A module that can be unloaded, in its state when the walker compiled its first rule. Written once.
#[repr(C)]
struct CacheRecord {
    start: AtomicUsize,
    end: AtomicUsize,
    header: AtomicUsize,
    id_address: AtomicUsize,
    id: [AtomicU64; 2],
}

/// The result of a lookup of a pc in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CachedRule {
    Missing,
    /// A rule of a permanent module.
    Sure(UnwindRule),
    /// A rule of this record's module, which may be unloaded.
    If(u16, UnwindRule),
}

impl Cache {
    /// The current table, for the length of a walk.
    #[inline(always)]
    pub(crate) fn view(&self) -> CacheView {
        match self.slots() {
            Some(slots) => CacheView { words: slots.words(), shift: 64 - slots.bits, slots: Some(slots) },
            None => CacheView::NOTHING,
        }
    }

    #[inline]
    fn slots(&self) -> Option<&'static CacheSlots> {
        let slots = self.slots.load(Ordering::Acquire);
        // SAFETY: the pointer is null or leads to a table that `new_table` initialized before it stored the pointer;
        // tables are never unmapped.
        unsafe { slots.as_ref() }
    }

    /// Adds the rule of `pc`, which is in `module`, to the cache if that is possible. Returns the number of the
    /// module's record if the module can be unloaded.
    pub(crate) fn keep(&self, pc: usize, module: &UnwindModule, rule: UnwindRule) -> Option<u16> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if pc >= 1 << 48 {
            return None;
        }
        let id = if module.is_permanent() { None } else { Some(module.identity()?) };
        if self.writing.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return None;
        }
        let insert = || self.insert(pc, module, id, rule);
        let record = insert().or_else(|| self.begin_anew().and_then(|()| insert()));
        self.writing.store(false, Ordering::Release);
        record.flatten()
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Inserts a rule. Returns `None` if there is no room. The caller holds `writing`.
    fn insert(
        &self,
        pc: usize,
        module: &UnwindModule,
        id: Option<ModuleIdentity>,
        rule: UnwindRule,
    ) -> Option<Option<u16>> {
        let slots = self.slots_for_writing()?;
        let packed = match (rule, &id) {
            (UnwindRule::Usual(usual), None) => {
                pack(usual.from_fp, usual.cfa, usual.fp, usual.return_address)
            }
            _ => None,
        };
        let (packed, record) = match packed {
            Some(packed) => (packed, 0),
            None => {
                let wide = self.wide_for_writing(slots)?;
                let record = match id {
                    None => 0,
                    Some(id) => wide.record(module, &id)?,
                };
                (wide.intern(rule.to_word() | u64::from(record) << 48)? | WIDE, record)
            }
        };
        if slots.insert((pc as u64) << 16 | u64::from(packed)) {
            // A module starts at a page boundary, so the low bits have room for its record's number.
            note_replacement(module.start | usize::from(record));
        }
        Some((record != 0).then_some(record))
    }

    fn wide_for_writing(&self, slots: &CacheSlots) -> Option<&'static WideRow> {
        if let Some(wide) = slots.wide() {
            return Some(wide);
        }
        // All fields are atomics, and zero means "empty" in each of them.
        let wide = map(size_of::<WideRow>())?.cast::<WideRow>();
        self.bytes.fetch_add(size_of::<WideRow>(), Ordering::Relaxed);
        slots.wide.store(wide, Ordering::Release);
        slots.wide()
    }

    /// A table with room for one more rule.
    fn slots_for_writing(&self) -> Option<&'static CacheSlots> {
        let old = self.slots();
        if let Some(slots) = old
            && slots.used.load(Ordering::Relaxed) < slots.len() / 2
        {
            return Some(slots);
        }
        let bits = old.map_or(SMALLEST, |slots| slots.bits + 1);
        if bits > LARGEST {
            return None;
        }
        self.new_table(bits, old)
    }

    /// Replaces a full table with an empty table. The records of modules are lost with the old table, so the walker
    /// could not notice that a module was loaded at the addresses of an earlier module. Therefore this function counts
    /// a replacement: all data that callers keep about pcs becomes invalid.
    #[cold]
    fn begin_anew(&self) -> Option<()> {
        if self.bytes() > MOST_BYTES {
            return None;
        }
        self.new_table(SMALLEST, None)?;
        REPLACED.fetch_add(1, Ordering::Release);
        Some(())
    }

    /// Maps a table and copies the rules of the old one into it.
    fn new_table(&self, bits: u32, old: Option<&'static CacheSlots>) -> Option<&'static CacheSlots> {
        let bytes = size_of::<CacheSlots>() + (size_of::<AtomicU64>() << bits);
        let new = map(bytes)?.cast::<CacheSlots>();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: `map` returned a fresh mapping of `bytes`, aligned to a page, and no other thread has its address
        // yet.
        unsafe { new.write(CacheSlots { bits, used: AtomicUsize::new(0), wide: AtomicPtr::default() }) };
        // SAFETY: `new` is never unmapped, and the line above initialized its header.
        let slots = unsafe { &*new };
        if let Some(old) = old {
            slots.wide.store(old.wide.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for slot in old.into_iter().flat_map(CacheSlots::words) {
            let word = slot.load(Ordering::Relaxed);
            if word != 0 {
                slots.insert(word);
            }
        }
        self.slots.store(new, Ordering::Release);
        Some(slots)
    }
}

/// The number of times that rules of one module replaced rules of another module, because new code was loaded at the
/// same pcs, or that an empty table replaced a full table.
static REPLACED: AtomicU32 = AtomicU32::new(0);
/// The module (and record) that caused the last replacement. The module replaces a rule at each pc that it shares with
/// the earlier module at its addresses. All these replacements count as one.
static LAST_TO_REPLACE: AtomicUsize = AtomicUsize::new(0);

/// Counts a replacement. Only the current writer calls this.
fn note_replacement(module: usize) {
    if LAST_TO_REPLACE.swap(module, Ordering::Relaxed) != module {
        REPLACED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A number that changes when the code of another module is loaded at known pcs, or when the walker can no longer
/// detect this. A caller that reads the new number also sees the new table.
#[inline(always)]
pub fn replaced() -> u32 {
    REPLACED.load(Ordering::Acquire)
}

impl CacheSlots {
    #[inline]
    fn len(&self) -> usize {
        1 << self.bits
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        let header: *const CacheSlots = self;
        // SAFETY: `new_table` mapped the header and the slots as one piece, so the end of the header is inside the
        // mapping.
        let first = unsafe { header.add(1) };
        // SAFETY: `new_table` mapped `1 << bits` slots there, and the kernel filled them with zeroes, which are
        // valid atomics.
        unsafe { core::slice::from_raw_parts(first.cast(), self.len()) }
    }

    #[inline]
    fn wide(&self) -> Option<&'static WideRow> {
        let wide = self.wide.load(Ordering::Acquire);
        // SAFETY: the pointer is null or leads to a mapping that `wide_for_writing` made; it is never unmapped.
        unsafe { wide.as_ref() }
    }

    /// Inserts a slot's word and returns whether it replaced another rule. Only the current writer calls this.
    fn insert(&self, new: u64) -> bool {
        let words = self.words();
        let mut index = index(new >> 16, 64 - self.bits);
        loop {
            let slot = &words[index & (words.len() - 1)];
            let word = slot.load(Ordering::Relaxed);
            if word == 0 || word >> 16 == new >> 16 {
                slot.store(new, Ordering::Release);
                if word == 0 {
                    self.used.fetch_add(1, Ordering::Relaxed);
                }
                return word != 0 && word != new;
            }
            index += 1;
        }
    }
}

/// A table for the length of a walk: `1 << (64 - shift)` words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheView {
    words: &'static [AtomicU64],
    shift: u32,
    slots: Option<&'static CacheSlots>,
}

static NO_WORDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl CacheView {
    /// A view without any pc.
    pub(crate) const NOTHING: CacheView = CacheView { words: &NO_WORDS, shift: 63, slots: None };

    /// The packed rule of `pc`, or 0 if the table has no rule for it.
    #[inline(always)]
    pub(crate) fn get(&self, pc: usize) -> u16 {
        let mut index = index(pc as u64, self.shift);
        // SAFETY: `index` shifts a 64-bit product by `shift`, and `words` has `1 << (64 - shift)` elements.
        let first = unsafe { self.words.get_unchecked(index) };
        let mut word = first.load(Ordering::Acquire);
        // At least half of the slots are empty, so the loop ends.
        loop {
            if word >> 16 == pc as u64 {
                return word as u16;
            }
            if word == 0 {
                return 0;
            }
            index += 1;
            word = self.words[index & (self.words.len() - 1)].load(Ordering::Acquire);
        }
    }

    #[inline]
    fn wide(&self) -> Option<&'static WideRow> {
        self.slots?.wide()
    }

    /// Whether both views use the same list of wide rules and modules, so that an index means the same in both.
    #[inline]
    pub(crate) fn is_like(&self, other: &CacheView) -> bool {
        match (self.wide(), other.wide()) {
            (Some(one), Some(other)) => core::ptr::eq(one, other),
            _ => false,
        }
    }

    /// The rule to which a slot's lower half refers by index.
    #[inline(always)]
    pub(crate) fn resolve(&self, packed: u16) -> CachedRule {
        if packed & WIDE == 0 {
            return CachedRule::Missing;
        }
        let Some(wide) = self.wide() else { return CachedRule::Missing };
        let Some(rule) = wide.rules.get(usize::from(packed & !WIDE)) else { return CachedRule::Missing };
        let word = rule.load(Ordering::Acquire);
        let rule = UnwindRule::from_word(word & ((1 << 48) - 1));
        match (word >> 48) as u16 {
            0 => CachedRule::Sure(rule),
            record => CachedRule::If(record, rule),
        }
    }

    /// Whether the module of `record` is the module that contains `pc` now.
    pub(crate) fn is_still_there(&self, record: u16, pc: usize) -> bool {
        let Some(wide) = self.wide() else { return false };
        let Some(record) = wide.modules.get(usize::from(record).wrapping_sub(1)) else { return false };
        let (module, id) = record.read();
        module.is_still_there(pc, &id)
    }
}

/// Fibonacci hashing: the upper bits of the product mix all bits of the pc.
#[inline(always)]
fn index(pc: u64, shift: u32) -> usize {
    (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (shift & 63)) as usize
}

impl WideRow {
    /// The index of a rule's word. Adds the word if it is new. Only the current writer calls this.
    fn intern(&self, word: u64) -> Option<u16> {
        let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let head = &self.heads[hash as usize % HEADS];
        let mut link = head.load(Ordering::Relaxed);
        while let Some(index) = link.checked_sub(1) {
            if self.rules[usize::from(index)].load(Ordering::Relaxed) == word {
                return Some(index);
            }
            link = self.next[usize::from(index)].load(Ordering::Relaxed);
        }
        let index = self.rules_used.load(Ordering::Relaxed);
        self.rules.get(index)?.store(word, Ordering::Release);
        self.next[index].store(head.load(Ordering::Relaxed), Ordering::Relaxed);
        head.store(index as u16 + 1, Ordering::Relaxed);
        self.rules_used.store(index + 1, Ordering::Relaxed);
        Some(index as u16)
    }

    /// The number, from 1, of the module's record. Adds the record if it is new. Only the current writer calls this.
    fn record(&self, module: &UnwindModule, id: &ModuleIdentity) -> Option<u16> {
        let used = self.modules_used.load(Ordering::Relaxed);
        // Search backwards: a module that is loaded now was most likely recorded last.
        for index in (0..used).rev() {
            if self.modules[index].read() == (*module, *id) {
                return Some(index as u16 + 1);
            }
        }
        // The number takes 12 bits and is never 0.
        self.modules.get(..MAX_MODULES - 1)?.get(used)?.write(module, id);
        self.modules_used.store(used + 1, Ordering::Relaxed);
        Some(used as u16 + 1)
    }
}

impl CacheRecord {
    fn write(&self, module: &UnwindModule, id: &ModuleIdentity) {
        self.start.store(module.start, Ordering::Relaxed);
        self.end.store(module.end, Ordering::Relaxed);
        self.header.store(module.header, Ordering::Relaxed);
        self.id_address.store(id.address, Ordering::Relaxed);
        let id = u128::from_ne_bytes(id.bytes);
        self.id[0].store(id as u64, Ordering::Relaxed);
        self.id[1].store((id >> 64) as u64, Ordering::Relaxed);
    }

    fn read(&self) -> (UnwindModule, ModuleIdentity) {
        let module = UnwindModule {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            header: self.header.load(Ordering::Relaxed),
        };
        let low = u128::from(self.id[0].load(Ordering::Relaxed));
        let high = u128::from(self.id[1].load(Ordering::Relaxed));
        let bytes = (high << 64 | low).to_ne_bytes();
        (module, ModuleIdentity { address: self.id_address.load(Ordering::Relaxed), bytes })
    }
}

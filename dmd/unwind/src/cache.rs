//! The rules that were compiled so far, for all threads: pc -> rule.
//!
//! A slot is one word, the pc in its upper 48 bits. The lower 16 hold the rule itself if it is a usual one
//! of a module that stays, else the index of a wider one. So a look-up is mostly one load, and a slot can
//! be read and replaced without a lock: readers see the old rule or the new one.
//!
//! Writers exclude each other by a flag that is tried, never waited for: whoever does not get it goes
//! without caching what it compiled. That is what happens in a signal handler that interrupts a writer.
//! When the table is half full a larger one takes its place. The old one stays, as readers may be in it;
//! together they hold at most what the newest one does. When there is no room for another module or wider rule, as in
//! a program that loads libraries all the time, an empty table takes its place, and everything begins anew.
//!
//! A rule of a module that can be unloaded names a record of that module. It counts only after the walk
//! has seen that this module is still there: by its build id or, if it has none, by its path and some of its
//! contents.

use crate::arch::pack;
use crate::module::{Identity, Module};
use crate::rule::Rule;
use crate::sys::map;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The rules' owner; there is one in a process.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: AtomicPtr<Slots>,
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

/// Frees the walker's flag, which a thread that does not exist in the child of a fork may have held.
pub fn after_fork_in_child() {
    CACHE.writing.store(false, Ordering::Release);
}

/// How many rules were compiled, whether or not they could be kept.
pub fn compiled_rules() -> usize {
    CACHE.compiled.load(Ordering::Relaxed)
}

/// Bytes that the walker's tables have mapped; more than they occupy, as most of it is never touched.
pub fn mapped_bytes() -> usize {
    CACHE.bytes()
}

/// What a slot's lower half means.
const WIDE: u16 = 1 << 15;
const SMALLEST: u32 = 12;
/// 8 MiB of slots.
const LARGEST: u32 = 20;
/// With so much mapped no table is made in place of a full one: pcs that are not in it are compiled anew each time.
const MOST_BYTES: usize = 64 << 20;

/// A table of `1 << bits` slots, behind its header in the same mapping.
#[derive(Debug)]
#[repr(C)]
struct Slots {
    bits: u32,
    used: AtomicUsize,
    /// What its slots name, and those of the smaller tables before it: allocated at first need.
    wide: AtomicPtr<Wide>,
}

const MAX_WIDE: usize = 1 << 15;
const MAX_MODULES: usize = 1 << 12;
const HEADS: usize = 1 << 10;

/// All in one mapping, of which only the pages that are used exist.
#[repr(C)]
struct Wide {
    rules_used: AtomicUsize,
    modules_used: AtomicUsize,
    /// Chains of equal hashes through `next`: an index plus one.
    heads: [AtomicU16; HEADS],
    next: [AtomicU16; MAX_WIDE],
    /// The rule's word in the lower 48 bits, above it the module's record plus one, or 0 for a module that
    /// stays.
    rules: [AtomicU64; MAX_WIDE],
    modules: [Record; MAX_MODULES],
}

/// A module that can be unloaded, as it was when its first rule was compiled. Written once.
#[repr(C)]
struct Record {
    start: AtomicUsize,
    end: AtomicUsize,
    header: AtomicUsize,
    id_address: AtomicUsize,
    id: [AtomicU64; 2],
}

/// What the cache knows of a pc.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cached {
    Missing,
    /// A rule of a module that stays.
    Sure(Rule),
    /// A rule of this record's module.
    If(u16, Rule),
}

impl Cache {
    /// The table to look pcs up in, for the length of a walk.
    #[inline(always)]
    pub(crate) fn view(&self) -> View {
        match self.slots() {
            Some(slots) => View { words: slots.words(), shift: 64 - slots.bits, slots: Some(slots) },
            None => View::NOTHING,
        }
    }

    #[inline]
    fn slots(&self) -> Option<&'static Slots> {
        let slots = self.slots.load(Ordering::Acquire);
        // SAFETY: null, or a table that is never unmapped.
        unsafe { slots.as_ref() }
    }

    /// Keeps the rule of `pc`, which is in `module`, if that is possible. Gives the record of the module,
    /// if it is one that can be unloaded.
    pub(crate) fn keep(&self, pc: usize, module: &Module, rule: Rule) -> Option<u16> {
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

    /// `None` if there is no room. Only with `writing` held.
    fn insert(&self, pc: usize, module: &Module, id: Option<Identity>, rule: Rule) -> Option<Option<u16>> {
        let slots = self.slots_for_writing()?;
        let packed = match (rule, &id) {
            (Rule::Usual(usual), None) => pack(usual.from_fp, usual.cfa, usual.fp, usual.return_address),
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
            // A module begins on a page, which leaves room for its record.
            note_replacement(module.start | usize::from(record));
        }
        Some((record != 0).then_some(record))
    }

    fn wide_for_writing(&self, slots: &Slots) -> Option<&'static Wide> {
        if let Some(wide) = slots.wide() {
            return Some(wide);
        }
        // All of it is atomics, for which zeroes are what "empty" means.
        let wide = map(size_of::<Wide>())?.cast::<Wide>();
        self.bytes.fetch_add(size_of::<Wide>(), Ordering::Relaxed);
        slots.wide.store(wide, Ordering::Release);
        slots.wide()
    }

    /// A table with room for one more.
    fn slots_for_writing(&self) -> Option<&'static Slots> {
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

    /// Puts an empty table in the place of one without room. Which modules were seen is forgotten with it, so that
    /// another in the place of one would not be noticed: all known of pcs is void.
    #[cold]
    fn begin_anew(&self) -> Option<()> {
        if self.bytes() > MOST_BYTES {
            return None;
        }
        self.new_table(SMALLEST, None)?;
        REPLACED.fetch_add(1, Ordering::Release);
        Some(())
    }

    /// A table with what is in the old one.
    fn new_table(&self, bits: u32, old: Option<&'static Slots>) -> Option<&'static Slots> {
        let bytes = size_of::<Slots>() + (size_of::<AtomicU64>() << bits);
        let new = map(bytes)?.cast::<Slots>();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: a fresh mapping, aligned to a page, that nobody else has seen.
        unsafe { new.write(Slots { bits, used: AtomicUsize::new(0), wide: AtomicPtr::default() }) };
        // SAFETY: as above, and just written.
        let slots = unsafe { &*new };
        if let Some(old) = old {
            slots.wide.store(old.wide.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for slot in old.into_iter().flat_map(Slots::words) {
            let word = slot.load(Ordering::Relaxed);
            if word != 0 {
                slots.insert(word);
            }
        }
        self.slots.store(new, Ordering::Release);
        Some(slots)
    }
}

/// How often rules of another module took the place of some: other code lies at their pcs.
static REPLACED: AtomicU32 = AtomicU32::new(0);
/// The module of which that was last true. It goes on with each of its pcs that the one before had too.
static LAST_TO_REPLACE: AtomicUsize = AtomicUsize::new(0);

/// Only by the one writer.
fn note_replacement(module: usize) {
    if LAST_TO_REPLACE.swap(module, Ordering::Relaxed) != module {
        REPLACED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Changes whenever pcs were found to be of another module than before. Whoever sees that it has changed sees the table
/// that it has changed with.
#[inline(always)]
pub fn replaced() -> u32 {
    REPLACED.load(Ordering::Acquire)
}

impl Slots {
    #[inline]
    fn len(&self) -> usize {
        1 << self.bits
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        let header: *const Slots = self;
        // SAFETY: the mapping has the slots behind the header.
        let first = unsafe { header.add(1) };
        // SAFETY: there are so many, all initialized (to zero) by the mapping.
        unsafe { core::slice::from_raw_parts(first.cast(), self.len()) }
    }

    #[inline]
    fn wide(&self) -> Option<&'static Wide> {
        let wide = self.wide.load(Ordering::Acquire);
        // SAFETY: null, or a mapping that stays.
        unsafe { wide.as_ref() }
    }

    /// Tells whether another rule was there. Only by the one writer.
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

/// A table as a walk uses it: `1 << (64 - shift)` words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    words: &'static [AtomicU64],
    shift: u32,
    slots: Option<&'static Slots>,
}

static NO_WORDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

impl View {
    /// In which no pc is found.
    pub(crate) const NOTHING: View = View { words: &NO_WORDS, shift: 63, slots: None };

    /// The packed rule of `pc`, 0 if there is none.
    #[inline(always)]
    pub(crate) fn get(&self, pc: usize) -> u16 {
        let mut index = index(pc as u64, self.shift);
        // SAFETY: so large a shift leaves an index below the number of words.
        let first = unsafe { self.words.get_unchecked(index) };
        let mut word = first.load(Ordering::Acquire);
        // Half of the slots are empty, so this ends.
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
    fn wide(&self) -> Option<&'static Wide> {
        self.slots?.wide()
    }

    /// Whether both name the same by the same numbers.
    #[inline]
    pub(crate) fn is_like(&self, other: &View) -> bool {
        match (self.wide(), other.wide()) {
            (Some(one), Some(other)) => core::ptr::eq(one, other),
            _ => false,
        }
    }

    /// What a slot's lower half stands for.
    #[inline(always)]
    pub(crate) fn resolve(&self, packed: u16) -> Cached {
        if packed & WIDE == 0 {
            return Cached::Missing;
        }
        let Some(wide) = self.wide() else { return Cached::Missing };
        let Some(rule) = wide.rules.get(usize::from(packed & !WIDE)) else { return Cached::Missing };
        let word = rule.load(Ordering::Acquire);
        let rule = Rule::from_word(word & ((1 << 48) - 1));
        match (word >> 48) as u16 {
            0 => Cached::Sure(rule),
            record => Cached::If(record, rule),
        }
    }

    /// Is the module of `record` the one that holds `pc` now?
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

impl Wide {
    /// The index of a rule's word, old or new. Only by the one writer.
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

    /// The number, from 1, of the module's record, old or new. Only by the one writer.
    fn record(&self, module: &Module, id: &Identity) -> Option<u16> {
        let used = self.modules_used.load(Ordering::Relaxed);
        // Backwards, as what is loaded now was most likely recorded last.
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

impl Record {
    fn write(&self, module: &Module, id: &Identity) {
        self.start.store(module.start, Ordering::Relaxed);
        self.end.store(module.end, Ordering::Relaxed);
        self.header.store(module.header, Ordering::Relaxed);
        self.id_address.store(id.address, Ordering::Relaxed);
        let id = u128::from_ne_bytes(id.bytes);
        self.id[0].store(id as u64, Ordering::Relaxed);
        self.id[1].store((id >> 64) as u64, Ordering::Relaxed);
    }

    fn read(&self) -> (Module, Identity) {
        let module = Module {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            header: self.header.load(Ordering::Relaxed),
        };
        let low = u128::from(self.id[0].load(Ordering::Relaxed));
        let high = u128::from(self.id[1].load(Ordering::Relaxed));
        let bytes = (high << 64 | low).to_ne_bytes();
        (module, Identity { address: self.id_address.load(Ordering::Relaxed), bytes })
    }
}

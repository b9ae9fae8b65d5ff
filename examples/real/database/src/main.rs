//! `database [FOLDER] [ORDERS]` fills a redb database of orders, with an index by customer. Then it sums up the orders
//! of each customer in memory.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use redb::{Database, MultimapTableDefinition, ReadableDatabase, ReadableTable, TableDefinition};

const ORDERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("orders");
const BY_CUSTOMER: MultimapTableDefinition<'_, &str, u64> = MultimapTableDefinition::new("by_customer");
const BATCH: u64 = 10_000;

/// An order as it is stored: the customer's name, then the items.
struct Order {
    customer: String,
    items: Vec<Item>,
}

struct Item {
    article: u32,
    amount: u16,
    note: String,
}

impl Order {
    /// A made-up order. The numbers of an order are a hash of its key.
    fn new(key: u64) -> Self {
        let hash = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let items = (0..1 + hash % 4).map(|item| Item {
            article: (hash >> (8 + item)) as u32 % 50_000,
            amount: 1 + (hash >> (40 + item)) as u16 % 9,
            note: "gift wrapping, please ".repeat((hash >> (20 + item)) as usize % 3),
        });
        Self { customer: format!("customer-{:05}", hash >> 32 & 0x3fff), items: items.collect() }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend((self.customer.len() as u16).to_le_bytes());
        out.extend(self.customer.as_bytes());
        for item in &self.items {
            out.extend(item.article.to_le_bytes());
            out.extend(item.amount.to_le_bytes());
            out.extend((item.note.len() as u16).to_le_bytes());
            out.extend(item.note.as_bytes());
        }
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let length = usize::from(u16::from_le_bytes(take(&mut bytes)?));
        let customer = text(&mut bytes, length)?;
        let mut items = Vec::new();
        while !bytes.is_empty() {
            let article = u32::from_le_bytes(take(&mut bytes)?);
            let amount = u16::from_le_bytes(take(&mut bytes)?);
            let length = usize::from(u16::from_le_bytes(take(&mut bytes)?));
            items.push(Item { article, amount, note: text(&mut bytes, length)? });
        }
        Some(Self { customer, items })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn text(bytes: &mut &[u8], length: usize) -> Option<String> {
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

/// The orders of one customer.
#[derive(Default)]
struct Account {
    orders: Vec<u64>,
    articles: BTreeMap<u32, u64>,
    notes: Vec<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let orders = arguments.next().map_or(Ok(500_000), |count| count.parse())?;
    let path = folder.join(format!("orders-{}.redb", std::process::id()));

    let database = Database::builder().set_cache_size(128 << 20).create(&path)?;
    fill(&database, orders)?;
    let accounts = accounts(&database)?;
    let indexed = indexed(&database)?;
    let items: u64 = accounts.values().flat_map(|account| account.articles.values()).sum();
    println!("{orders} orders of {} customers, {items} articles, {indexed} in the index", accounts.len());
    drop(database);
    std::fs::remove_file(path)?;
    Ok(())
}

fn fill(database: &Database, orders: u64) -> Result<(), redb::Error> {
    let mut bytes = Vec::new();
    for first in (0..orders).step_by(BATCH as usize) {
        let write = database.begin_write()?;
        {
            let mut table = write.open_table(ORDERS)?;
            let mut index = write.open_multimap_table(BY_CUSTOMER)?;
            for key in first..orders.min(first + BATCH) {
                let order = Order::new(key);
                order.encode(&mut bytes);
                table.insert(key, &*bytes)?;
                index.insert(&*order.customer, key)?;
            }
        }
        write.commit()?;
    }
    Ok(())
}

fn accounts(database: &Database) -> Result<HashMap<String, Account>, Box<dyn std::error::Error>> {
    let mut accounts: HashMap<String, Account> = HashMap::new();
    for row in database.begin_read()?.open_table(ORDERS)?.iter()? {
        let (key, value) = row?;
        let order = Order::decode(value.value()).ok_or("a damaged order")?;
        let account = accounts.entry(order.customer).or_default();
        account.orders.push(key.value());
        for item in order.items {
            *account.articles.entry(item.article).or_default() += u64::from(item.amount);
            account.notes.push(item.note);
        }
    }
    Ok(accounts)
}

fn indexed(database: &Database) -> Result<u64, redb::Error> {
    let index = database.begin_read()?.open_multimap_table(BY_CUSTOMER)?;
    let mut found = 0;
    for customer in 0..0x4000 {
        found += index.get(&*format!("customer-{customer:05}"))?.count() as u64;
    }
    Ok(found)
}

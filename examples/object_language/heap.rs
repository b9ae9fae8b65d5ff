//! The heap of the language: objects in an arena of `gc-arena`. The names of a program are its roots.

use std::collections::{BTreeMap, HashSet, VecDeque};

use anyhow::{Context as _, bail};
use gc_arena::{Arena, Collect, Gc, Mutation, Rootable, lock::RefLock};
use heap_graph::graph::{CoarseType, GraphError, GraphTextId};
use heap_graph::{Graph, GraphBuilder, NodeId, NodeParts};
use memory_reporter::watching::{ClassName, WatchedCollector, allocation_site, describe_block};

use crate::program::{Literal, Statement};

#[derive(Clone, Copy, Collect)]
#[collect(no_drop)]
enum Value<'gc> {
    Nil,
    Number(f64),
    Object(Gc<'gc, Object<'gc>>),
}

#[derive(Collect)]
#[collect(no_drop)]
struct Object<'gc> {
    /// The index of the class.
    class: usize,
    fields: Vec<Value<'gc>>,
}

/// A class of the language.
struct Class {
    name: ClassName,
    fields: Vec<String>,
}

type Names<'gc> = RefLock<BTreeMap<String, Value<'gc>>>;

/// The arena of all objects. Its root contains the names.
type Objects = Arena<Rootable![Gc<'_, Names<'_>>]>;

/// The objects, and the program's definitions.
pub(crate) struct Heap {
    arena: WatchedCollector<Objects>,
    classes: Vec<Class>,
}

impl Heap {
    pub(crate) fn new() -> Self {
        let arena = Arena::new(|mc| Gc::new(mc, Names::new(BTreeMap::new())));
        Self { arena: WatchedCollector::new(arena), classes: Vec::new() }
    }

    /// Runs statements. After each statement, the collector may do a slice of its work.
    pub(crate) fn run(&mut self, statements: &[Statement]) -> anyhow::Result<()> {
        for statement in statements {
            match statement {
                Statement::Class { name, fields } => {
                    let name = ClassName::new(name.as_str());
                    self.classes.push(Class { name, fields: fields.clone() });
                }
                Statement::Let { name, class, values } => self.make(name, class, values)?,
                Statement::Forget { name } => {
                    self.arena.mutate(|mc, names| {
                        names.borrow_mut(mc).remove(name);
                    });
                }
                Statement::Repeat { times, body } => {
                    for _ in 0..*times {
                        self.run(body)?;
                    }
                }
            }
            self.arena.slice("ALLOC_TRIGGER");
        }
        Ok(())
    }

    /// Whether the program has defined this class.
    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.classes.iter().any(|class| class.name.as_str() == name)
    }

    /// Collects all garbage at once.
    pub(crate) fn collect(&mut self) {
        self.arena.collect("API");
    }

    fn make(&self, name: &str, class: &str, values: &[Literal]) -> anyhow::Result<()> {
        let number = self.classes.iter().position(|known| known.name.as_str() == class);
        let number = number.with_context(|| format!("no class {class}"))?;
        let class = &self.classes[number];
        if values.len() != class.fields.len() {
            bail!("{name}: {} has {} fields", class.name.as_str(), class.fields.len());
        }
        self.arena.mutate(|mc, names| {
            let known = names.borrow();
            let value = |literal: &Literal| match literal {
                Literal::Nil => Ok(Value::Nil),
                Literal::Number(number) => Ok(Value::Number(*number)),
                Literal::Name(name) => known.get(name).copied().with_context(|| format!("no object {name}")),
            };
            let fields = values.iter().map(value).collect::<anyhow::Result<Vec<_>>>()?;
            drop(known);
            let object = allocate(mc, Object { class: number, fields }, &class.name);
            // The collector frees an object when no name leads to it any more, directly or through other objects.
            names.borrow_mut(mc).insert(name.to_owned(), Value::Object(object));
            Ok(())
        })
    }

    /// The graph of all objects, with the classes of the language and the stacks that DMD recorded. Edges from the
    /// root have the names of the program.
    pub(crate) fn graph(&self) -> Result<Graph, GraphError> {
        self.arena.mutate(|_, names| {
            let mut builder = GraphBuilder::new();
            let (roots, object_type) =
                (builder.text("names")?, builder.text("object_language::heap::Object")?);
            let classes = self.classes.iter().map(|class| builder.text(class.name.as_str()));
            let classes = classes.collect::<Result<Vec<GraphTextId>, _>>()?;
            let mut found = Found { seen: HashSet::new(), queue: VecDeque::new() };
            builder.node(NodeParts::new(NodeId(0), 0, roots))?;
            for (name, value) in names.borrow().iter() {
                found.edge(&mut builder, name, *value)?;
            }
            while let Some(object) = found.queue.pop_front() {
                let stack = allocation_site(Gc::as_ptr(object));
                let node = NodeParts {
                    coarse_type: CoarseType::Object,
                    class_name: Some(classes[object.class]),
                    allocation_stack: builder.stack(stack.as_ref().map_or(&[], |stack| stack.frames()))?,
                    ..NodeParts::new(id(object), size(&object), object_type)
                };
                builder.node(node)?;
                for (field, value) in self.classes[object.class].fields.iter().zip(&object.fields) {
                    found.edge(&mut builder, field, *value)?;
                }
            }
            builder.finish()
        })
    }
}

/// Puts an object into the arena, and registers its class for DMD.
#[inline(never)]
fn allocate<'gc>(mc: &Mutation<'gc>, object: Object<'gc>, class: &ClassName) -> Gc<'gc, Object<'gc>> {
    let object = Gc::new(mc, object);
    describe_block(Gc::as_ptr(object), class);
    object
}

/// The objects found so far on a walk through the graph.
struct Found<'gc> {
    seen: HashSet<u64>,
    queue: VecDeque<Gc<'gc, Object<'gc>>>,
}

impl<'gc> Found<'gc> {
    fn edge(&mut self, builder: &mut GraphBuilder, name: &str, value: Value<'gc>) -> Result<(), GraphError> {
        let Value::Object(object) = value else { return Ok(()) };
        let name = builder.text(name)?;
        builder.edge(id(object), Some(name))?;
        if self.seen.insert(id(object).0) {
            self.queue.push_back(object);
        }
        Ok(())
    }
}

fn id(object: Gc<'_, Object<'_>>) -> NodeId {
    NodeId(Gc::as_ptr(object).addr() as u64)
}

/// The bytes of an object with its fields. The arena puts two words before the object.
fn size(object: &Object<'_>) -> u64 {
    let words = 2 * size_of::<usize>();
    (words + size_of::<Object<'_>>() + object.fields.capacity() * size_of::<Value<'_>>()) as u64
}

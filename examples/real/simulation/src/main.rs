//! `simulation [BODIES] [STEPS]` simulates falling towers of boxes with rapier, and records how each box moves.

use std::collections::HashMap;

use rapier3d::prelude::*;

/// The positions of a body, recorded at every tenth step.
#[derive(Default)]
struct Track {
    places: Vec<Vector>,
    contacts: usize,
}

fn towers(world: &mut PhysicsWorld, bodies: usize) -> HashMap<RigidBodyHandle, Track> {
    world.insert(RigidBodyBuilder::fixed(), ColliderBuilder::cuboid(200.0, 0.1, 200.0));
    let mut tracks = HashMap::new();
    for number in 0..bodies {
        let (tower, floor) = (number / 20, number % 20);
        let (x, z) = ((tower % 30) as f32 * 3.0, (tower / 30) as f32 * 3.0);
        // Each box is a bit to the side of the box below it, so that the towers fall.
        let place = Vector::new(x + floor as f32 * 0.06, 0.6 + floor as f32 * 1.01, z);
        let (body, _) = world.insert(
            RigidBodyBuilder::dynamic().translation(place),
            ColliderBuilder::cuboid(0.5, 0.5, 0.5).friction(0.4),
        );
        tracks.insert(body, Track::default());
    }
    tracks
}

fn main() {
    let mut arguments = std::env::args().skip(1).map_while(|argument| argument.parse().ok());
    let (bodies, steps) = (arguments.next().unwrap_or(8_000), arguments.next().unwrap_or(200));

    let mut world = PhysicsWorld::default();
    let mut tracks = towers(&mut world, bodies);
    for step in 0..steps {
        world.step();
        if step % 10 == 0 {
            for (&body, track) in &mut tracks {
                track.places.push(world.bodies[body].translation());
            }
            for pair in world.narrow_phase.contact_pairs() {
                let parent = world.colliders[pair.collider1].parent();
                if let Some(track) = parent.and_then(|body| tracks.get_mut(&body)) {
                    track.contacts += 1;
                }
            }
        }
    }

    let moved = |track: &Track| {
        track.places.first().zip(track.places.last()).map_or(0.0, |(a, b)| (*b - *a).length())
    };
    let fallen = tracks.values().filter(|track| moved(track) > 0.5).count();
    let contacts: usize = tracks.values().map(|track| track.contacts).sum();
    println!(
        "{bodies} boxes, {steps} steps: {fallen} have moved, {contacts} contacts, {} bodies",
        world.bodies.len()
    );
}

// Throws exceptions through frames that allocate, runs destructors of thread-locals and statics that allocate, and
// uses every form of new; see the sizes in ../suite/live_blocks.rs.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static char *volatile kept[1000];
static int count;

static void keep(void *block) { kept[__atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST)] = static_cast<char *>(block); }

struct AtThreadEnd {
    std::string *text = new std::string(100, 'x');
    ~AtThreadEnd() {
        delete text;
        keep(std::malloc(6003));
    }
};
static thread_local AtThreadEnd at_thread_end;

struct AtEnd {
    ~AtEnd() { keep(new char[6004]); }
};
static AtEnd at_end;

static int thrown(int depth) {
    std::vector<int> frame(100, depth);
    std::string text(1000, 'y');
    if (depth == 0) throw std::runtime_error(text);
    return thrown(depth - 1) + frame[3];
}

static void no_memory() { throw std::length_error("handler"); }

struct alignas(256) Aligned {
    char bytes[6144];
};

int main() {
    for (int i = 0; i < 3; i++) keep(new char[6001]);
    for (int i = 0; i < 2; i++) keep(new Aligned);
    Aligned *volatile gone = new Aligned;
    delete gone;
    int caught = 0;
    for (int i = 0; i < 2000; i++) {
        try {
            thrown(10);
        } catch (const std::exception &error) {
            caught += error.what()[0] == 'y';
        }
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([] {
            std::string text = *at_thread_end.text;
            for (int i = 0; i < 1000; i++) text += std::to_string(i);
        });
    }
    for (auto &thread : threads) thread.join();
    volatile std::size_t huge = ~std::size_t(0) / 4;
    std::set_new_handler(no_memory);
    int handled = 0;
    try {
        keep(new char[huge]);
    } catch (const std::length_error &) {
        handled++;
    }
    std::set_new_handler(nullptr);
    bool none = new (std::nothrow) char[huge] == nullptr;
    try {
        std::vector<int>().at(3);
    } catch (...) {
        handled++;
    }
    std::printf("%d %d %d\n", caught, handled, none);
    return 2;
}

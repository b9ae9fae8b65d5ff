# A stream for `git fast-import`: commits of 40 authors to files of a source tree, some files far more often than others.
function random(limit) { state = (state * 1103515245 + 12345) % 2147483648; return int(state / 65536) % limit }
BEGIN {
    state = 40
    for (commit = 1; commit <= commits; commit++) {
        author = "author-" random(40)
        printf "commit refs/heads/main\nmark :%d\n", commit
        printf "author %s <%s@example.org> %d +0000\n", author, author, 1000000000 + commit * 3600
        printf "committer %s <%s@example.org> %d +0000\n", author, author, 1000000000 + commit * 3600
        message = sprintf("parser: case %d of module %d\n\nThe case was missing.\n", random(900), random(90))
        printf "data %d\n%s", length(message), message
        if (commit > 1) printf "from :%d\n", commit - 1
        for (file = 1 + random(6); file > 0; file--) {
            crate = random(random(30) + 1)
            text = sprintf("pub fn function_%d() -> u32 {\n    %d\n}\n", commit, random(30000))
            printf "M 100644 inline crates/crate_%d/src/module_%d.rs\ndata %d\n%s", crate, random(random(60) + 1), length(text), text
        }
    }
    print "done"
}

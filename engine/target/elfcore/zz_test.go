package elfcore
import ("fmt";"os";"testing";"time";"path/filepath";"github.com/unwindd/unwindd/engine/object")
func TestZZ(t *testing.T) {
	p := os.Getenv("ZZ")
	b := time.Now()
	c := openReal(t, p, object.Finder{Folders: []string{filepath.Dir(p)}})
	fmt.Println("open", time.Since(b), len(c.Threads()), "threads", c.Info().Signal, c.Info().FaultAddress, c.Info().Problems, len(c.Info().Notes))
	for _, m := range c.Modules() { fmt.Printf("%s %x obj=%v %q\n", m.Path, m.BuildID, m.Object != nil, m.Problem) }
	bad := 0
	for _, th := range c.Threads() { pc, _ := th.Registers.Uint64(16, 0); ok := false; for _, m := range c.Modules() { if _, k := m.Contains(pc); k { ok = true } }; if !ok { bad++; fmt.Printf("pc %#x in no module\n", pc) } }
}

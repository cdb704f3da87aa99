package plugin

import (
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// ServeMain is `unwindd plugin serve NAME`: this process is the plugin of a
// bundled architecture. It returns when the engine is gone, and at once, with
// an error, when there is no architecture of that name.
func ServeMain(name string, bundled []Bundled) error {
	var names []string
	for _, b := range bundled {
		if b.Name == name {
			sdk.Serve(b.New())
			return nil
		}
		names = append(names, b.Name)
	}
	return fmt.Errorf("plugin serve: %w: no architecture %q is bundled, expected one of %s", ErrUsage, name, strings.Join(names, ", "))
}

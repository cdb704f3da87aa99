//go:build !race

package plugin

// slow says that starting a test binary takes long.
const slow = false

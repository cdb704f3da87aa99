// SPDX-License-Identifier: Apache-2.0

package fleet

// start is queueserver.Start. That package imports this one, so an external test sets it.
var start func(ServerOptions) (Server, error)

// SetStart sets start.
func SetStart(f func(ServerOptions) (Server, error)) { start = f }

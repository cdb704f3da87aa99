// SPDX-License-Identifier: Apache-2.0

package service

import (
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
)

// RunWorker runs a worker where args, the arguments of this process after its name, are those
// with which a Server starts its workers; isWorker is false of another process. A program calls
// it before it does anything else, if it is the Options.Self of a Server. plugins makes the
// options for starting plugins: dirs are the folders of vendors' plugins, and inProcess means
// that the bundled architectures run in the worker. RunWorker returns when the server is gone.
func RunWorker(args []string, plugins func(dirs []string, inProcess bool) (plugin.Options, error)) (isWorker bool, err error) {
	if !worker.IsWorker(args) {
		return false, nil
	}
	return true, worker.Main(args[len(worker.Args):], func(s *worker.Setup) (plugin.Options, error) {
		o, err := plugins(s.PluginDirs, s.InProcess)
		o.Pins, o.Choice = s.Pins, s.Choice
		return o, err
	})
}

// SPDX-License-Identifier: Apache-2.0
//
// A module of operators as torch has them: a function for Python, the operator, a dispatcher that chooses
// its kernel, and the launch, whose end it waits for. The queue is only memory: there is no accelerator that takes
// anything from it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensor {

using Tensor = std::vector<long>;

struct Dispatch {
	const char *kernel;
	unsigned groups, group_size;
	const long *argument;
	volatile long pending;
};

// Stream is a queue of an accelerator.
class Stream {
public:
	[[gnu::noinline]] void launch(const char *kernel, unsigned groups, unsigned group_size, const Tensor &argument)
	{
		packet_ = {kernel, groups, group_size, argument.data(), 1};
	}
	[[gnu::noinline]] void synchronize()
	{
		while (packet_.pending) {
			timespec pause = {3600, 0};
			nanosleep(&pause, nullptr);
		}
	}

private:
	Dispatch packet_ = {};
};

static Stream stream;

// Dispatcher calls the kernel of an operator.
class Dispatcher {
public:
	[[gnu::noinline]] Tensor call(const std::string &op, const Tensor &input, long limit)
	{
		if (op != "grade")
			throw std::invalid_argument(op);
		stream.launch("grade", unsigned(input.size() / 64), 64, input);
		stream.synchronize();
		Tensor out = input;
		for (long &value : out)
			value = value < limit ? value : limit;
		return out;
	}
};

namespace ops {

[[gnu::noinline]] Tensor grade(const Tensor &parts, long limit)
{
	Tensor out = Dispatcher().call("grade", parts, limit);
	if (out.size() != parts.size())
		throw std::runtime_error("grade");
	return out;
}

} // namespace ops
} // namespace tensor

// The function for Python.
static PyObject *tensor_grade(PyObject *, PyObject *args)
{
	PyObject *list;
	long limit;
	if (!PyArg_ParseTuple(args, "O!l", &PyList_Type, &list, &limit))
		return nullptr;
	tensor::Tensor parts;
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
		parts.push_back(PyLong_AsLong(PyList_GetItem(list, i)));
	tensor::Tensor graded;
	Py_BEGIN_ALLOW_THREADS
	graded = tensor::ops::grade(parts, limit);
	Py_END_ALLOW_THREADS
	PyObject *out = PyList_New(Py_ssize_t(graded.size()));
	for (size_t i = 0; out && i < graded.size(); i++)
		PyList_SetItem(out, Py_ssize_t(i), PyLong_FromLong(graded[i]));
	return out;
}

static PyMethodDef methods[] = {{"grade", tensor_grade, METH_VARARGS, "Grades parts."}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "tensor", nullptr, -1, methods};

PyMODINIT_FUNC PyInit_tensor() { return PyModule_Create(&module); }

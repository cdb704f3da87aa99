// SPDX-License-Identifier: Apache-2.0

// The module calls: C functions between the functions of Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <signal.h>

static PyObject *call(PyObject *self, PyObject *args) {
	PyObject *function, *rest, *result;
	(void)self;
	function = PyTuple_GetItem(args, 0);
	rest = PyTuple_GetSlice(args, 1, PyTuple_Size(args));
	if (!function || !rest)
		return NULL;
	result = PyObject_CallObject(function, rest);
	Py_DECREF(rest);
	return result;
}

static PyObject *twice(PyObject *self, PyObject *function) {
	PyObject *result = PyObject_CallObject(function, NULL);
	(void)self;
	if (!result)
		return NULL;
	Py_DECREF(result);
	return PyObject_CallObject(function, NULL);
}

static PyObject *crash(PyObject *self, PyObject *none) {
	(void)self, (void)none;
	raise(SIGSEGV);
	Py_RETURN_NONE;
}

static PyObject *must(PyObject *self, PyObject *function) {
	PyObject *result = PyObject_CallObject(function, NULL);
	(void)self;
	if (!result)
		abort();
	return result;
}

static volatile int zero;

static PyObject *divide(PyObject *self, PyObject *none) {
	(void)self, (void)none;
	return PyLong_FromLong(7 / zero);
}

static int deeper(int n) {
	volatile char room[1 << 16];
	room[n % 100] = 1;
	return deeper(n + 1) + room[n % 100];
}

static PyObject *overflow(PyObject *self, PyObject *none) {
	(void)self, (void)none;
	return PyLong_FromLong(deeper(0));
}

static void *thread(void *function) {
	PyGILState_STATE state = PyGILState_Ensure();
	Py_XDECREF(PyObject_CallObject(function, NULL));
	if (PyErr_Occurred())
		PyErr_Print();
	PyGILState_Release(state);
	return NULL;
}

static PyObject *in_thread(PyObject *self, PyObject *function) {
	pthread_t id;
	(void)self;
	if (pthread_create(&id, NULL, thread, function))
		return PyErr_NoMemory();
	Py_BEGIN_ALLOW_THREADS
	pthread_join(id, NULL);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

typedef struct {
	PyObject_HEAD
	PyObject *function;
} Notifier;

static PyObject *notifier_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
	Notifier *n = (Notifier *)PyType_GenericAlloc(type, 0);
	(void)kwargs;
	if (n) {
		n->function = PyTuple_GetItem(args, 0);
		Py_XINCREF(n->function);
	}
	return (PyObject *)n;
}

static void notifier_dealloc(PyObject *self) {
	PyTypeObject *type = Py_TYPE(self);
	Notifier *n = (Notifier *)self;
	Py_XDECREF(PyObject_CallObject(n->function, NULL));
	Py_XDECREF(n->function);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyType_Slot notifier_slots[] = {{Py_tp_new, notifier_new}, {Py_tp_dealloc, notifier_dealloc}, {0, NULL}};
static PyType_Spec notifier_spec = {"calls.Notifier", sizeof(Notifier), 0, Py_TPFLAGS_DEFAULT, notifier_slots};

static PyMethodDef methods[] = {
	{"call", call, METH_VARARGS, "calls a function with the other arguments"},
	{"twice", twice, METH_O, "calls a function twice"},
	{"crash", crash, METH_NOARGS, "ends the process"},
	{"must", must, METH_O, "calls a function, and ends the process where it raises an exception"},
	{"divide", divide, METH_NOARGS, "divides by 0"},
	{"overflow", overflow, METH_NOARGS, "ends the process for want of stack"},
	{"in_thread", in_thread, METH_O, "calls a function in a thread that Python has not made"},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "calls", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_calls(void) {
	PyObject *m = PyModule_Create(&module), *type = PyType_FromSpec(&notifier_spec);
	if (!m || !type || PyModule_AddObject(m, "Notifier", type))
		return NULL;
#ifdef Py_GIL_DISABLED
	PyUnstable_Module_SetGIL(m, Py_MOD_GIL_NOT_USED);
#endif
	return m;
}

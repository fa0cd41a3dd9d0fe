/** Not written yet. */
function explorerView(root, data, tell) { return { update() {}, destroy() {} }; }

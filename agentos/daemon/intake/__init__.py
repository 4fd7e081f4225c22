"""What people drop into folders, push, or have in another agent's folder."""
